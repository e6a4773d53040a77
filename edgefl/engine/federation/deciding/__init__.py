"""Who takes part in a round, and with what: what choices see, remember and cost."""
