"""A cell's learner: the stages of its sessions, its trainer, and its state."""
