"""The learners of a run: the PyTorch learner, a stand-in without training, or your own learner."""
