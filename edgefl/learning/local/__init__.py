"""Local training on devices, stacked or one by one: gradients, steps, and their FLOPs."""
