"""What tests of Flower apps need: garbage collections, which Flower asks for with each message, that take no time."""

import gc

import pytest

import edgefl.run.simulation  # noqa: F401  # what runs load is there before the first of them


@pytest.fixture(autouse=True)
def collected() -> None:
    """Keep what is there before a test out of them: they took a third of the time of these tests."""
    gc.freeze()
