"""Who may stand behind the contract's Learner: PyTorch's, none, or your own."""
