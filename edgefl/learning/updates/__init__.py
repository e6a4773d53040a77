"""What travels and waits: updates, what travels in their place, and the model that they make."""
