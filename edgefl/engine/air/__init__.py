"""The air interface, with links and their gains, and a round's transfers and their costs."""
