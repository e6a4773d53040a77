"""Local training on devices, stacked or one by one: gradients, steps, and FLOPs of a model."""
