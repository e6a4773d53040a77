"""All named faults, and where the results of the last `make faults` are."""

from pathlib import Path

from tests.faults import analysis, channel, engine, learning, mobility

FAULTS = (*channel.FAULTS, *mobility.FAULTS, *engine.FAULTS, *learning.FAULTS, *analysis.FAULTS)
RESULTS = Path(__file__).parent / "results.csv"
MUTANTS = Path(__file__).parent / "mutants.csv"
EQUIVALENT = Path(__file__).parent / "equivalent.csv"
# of those that were written before any check was tried
FIRST_SCORE = "112 of 129 were caught at first"
KILLED = ("killed", "timed out")  # a mutant with which tests never end is noticed
