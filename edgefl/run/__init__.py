"""Check, compose and record one run, carry it out in processes, and resume it."""
