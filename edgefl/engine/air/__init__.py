"""The air interface: links and their gains, a round's transfers, and their costs."""
