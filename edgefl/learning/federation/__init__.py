"""The learner of a cell: the stages of its sessions, training and tests, and its state."""
