"""Test the options that several commands share."""

import pytest

from edgefl.commands.shared import refuse_two_values
from tests.refusals import refused_at


@pytest.mark.parametrize(
    ("settings", "seed", "refused"),
    [
        (["seed=3"], 4, "--seed 4 would replace --set seed=3: leave one of them out"),
        (["a.b=1", "a.b=2"], None, "--set a.b=2 would replace --set a.b=1: leave one of them out"),
        (["a.b=1", "a={c: 1}"], None, "--set a={c: 1} would replace --set a.b=1: .*; set a section before"),
        (["a.b=1", "a=c"], None, "--set a=c would replace --set a.b=1"),
        (["seed=3", "seed=3"], 3, ""),
        (["a=c", "a.b=1", "a.b=1.0", " a.b =1"], None, ""),
        (["a.b=1", "a={b: 1, c: 2}", "ab=2"], None, ""),
    ],
)
def test_a_value_that_a_later_one_replaces_is_refused(
    settings: list[str], seed: int | None, refused: str
) -> None:
    if not refused:
        refuse_two_values(settings, seed)
        return
    with refused_at("", *refused.split(".*")):
        refuse_two_values(settings, seed)
