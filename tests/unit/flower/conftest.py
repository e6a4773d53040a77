"""What tests of Flower apps need: garbage collections, which Flower asks for with each message, that take no time."""

import gc

import pytest

import edgefl.run.simulation  # noqa: F401  # what runs load is there before the first of them


@pytest.fixture(autouse=True)
def collected() -> None:
    """Freeze existing objects before a test: collections took a third of the time of these tests."""
    gc.freeze()
