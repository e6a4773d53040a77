"""Train devices stacked or one by one: compute gradients and steps, and count a model's FLOPs."""
