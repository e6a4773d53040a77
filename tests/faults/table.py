"""List all named faults, and the files with the results of the last `make faults`."""

from pathlib import Path

from tests.faults import analysis, channel, engine, learning, mobility

FAULTS = (*channel.FAULTS, *mobility.FAULTS, *engine.FAULTS, *learning.FAULTS, *analysis.FAULTS)
RESULTS = Path(__file__).parent / "results.csv"
MUTANTS = Path(__file__).parent / "mutants.csv"
EQUIVALENT = Path(__file__).parent / "equivalent.csv"
# the score of the first faults, which were written before any check was run against them
FIRST_SCORE = "112 of 129 were caught at first"
KILLED = ("killed", "timed out")  # a mutant that makes tests run forever counts as caught
