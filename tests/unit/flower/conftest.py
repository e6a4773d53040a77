"""Make garbage collection fast, as Flower runs one for each message."""

import gc

import pytest

import edgefl.run.simulation  # noqa: F401  # what runs load is there before the first of them


@pytest.fixture(autouse=True)
def collected() -> None:
    """Freeze existing objects before a test, as collecting them took a third of these tests' time."""
    gc.freeze()
