"""A radio that replays measured rates instead of computing them."""
