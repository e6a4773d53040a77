"""The learner of a cell, with the stages of its sessions, training and tests, and its state."""
