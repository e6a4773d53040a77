"""Model the air interface: links and their gains, and the transfers of a round and their costs."""
