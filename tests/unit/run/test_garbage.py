"""Python's collector of garbage is asked less often inside, and as before behind, whatever happened."""

import gc
from collections.abc import Iterator

import pytest

from edgefl.run.garbage import THRESHOLDS, seldom_collected


@pytest.fixture(autouse=True)
def as_it_was() -> Iterator[None]:
    before = gc.get_threshold()
    yield
    gc.set_threshold(*before)


@pytest.mark.parametrize(
    ("before", "inside"),
    [((700, 10, 10), THRESHOLDS), ((50_000, 10, 10), (50_000, 10, 100)), ((0, 10, 10), (0, 10, 10))],
)
def test_it_is_seldom_inside_and_as_before_behind(
    before: tuple[int, int, int], inside: tuple[int, int, int]
) -> None:
    gc.set_threshold(*before)
    with seldom_collected():
        assert gc.get_threshold() == inside
    assert gc.get_threshold() == before


def test_an_error_leaves_it_as_it_was() -> None:
    gc.set_threshold(700, 10, 10)
    with pytest.raises(ZeroDivisionError), seldom_collected():
        _ = 1 / 0
    assert gc.get_threshold() == (700, 10, 10)
