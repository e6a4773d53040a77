"""Test which tails still run when a round ends."""

import math

import pandas as pd
import pytest

from edgefl.analysis.measures.metrics import with_spending
from edgefl.analysis.measures.tails import open_tails

KEY = {"variant": "a", "seed": 1, "cell": 0, "phase": "train"}
ENDS_S = [10.0, 20.0, 30.0]


def rounds_of(number: int) -> pd.DataFrame:
    """Return the first rounds of a session, each of 10 s and 9 J."""
    rows = [
        KEY | {"session": 1, "round": t, "start_s": end_s - 10.0, "end_s": end_s, "energy_j": 9.0}
        for t, end_s in enumerate(ENDS_S[:number], start=1)
    ]
    return pd.DataFrame(rows)


def devices_of(*parts: tuple[int, int, float]) -> pd.DataFrame:
    """Return devices' rows from round, device and joules of the tail: a part takes the round's first five seconds."""
    rows = []
    for number, device, tail_j in parts:
        begins_s = ENDS_S[number - 1] - 10.0
        times = {"downlink_start_s": begins_s, "downlink_end_s": begins_s + 1.0}
        times |= {"uplink_start_s": begins_s + 4.0, "uplink_end_s": begins_s + 5.0}
        rows.append(KEY | times | {"session": 1, "round": number, "device": device, "energy_tail_j": tail_j})
    return pd.DataFrame(rows)


@pytest.mark.parametrize(
    ("longest_s", "open_j"),
    [
        # device 0 returns in round 3, device 1 never: its only tail, and those of the last round, have no end
        pytest.param(math.inf, [1.0 + 2.0, 1.0 + 2.0, 2.0 + 4.0], id="until the next transfer"),
        # the tails of round 1 are over 12 s after its uploads, in round 2
        pytest.param(12.0, [1.0 + 2.0, 0.0, 4.0], id="at most 12 s"),
        pytest.param(3.0, [0.0, 0.0, 0.0], id="over before the round"),
    ],
)
def test_a_tail_runs_until_the_next_transfer_or_the_release(longest_s: float, open_j: list[float]) -> None:
    devices = devices_of((1, 0, 1.0), (1, 1, 2.0), (3, 0, 4.0))
    assert list(open_tails(rounds_of(3), devices, longest_s)) == open_j


def test_what_is_spent_by_a_round_does_not_depend_on_what_follows() -> None:
    """In a run that ends after round 2, device 1's tail of round 1 runs in full, 5 J; otherwise round 3 cuts it."""
    short = rounds_of(2).assign(energy_tail_j=[1.0 + 5.0, 5.0])
    short["energy_j"] = [8.0 + 6.0, 4.0 + 5.0]
    short["open_tail_j"] = open_tails(short, devices_of((1, 0, 1.0), (1, 1, 5.0), (2, 0, 5.0)), math.inf)
    long = rounds_of(3).assign(energy_tail_j=[1.0 + 2.0, 1.0, 5.0])
    long["energy_j"] = [8.0 + 3.0, 4.0 + 1.0, 9.0]
    parts = devices_of((1, 0, 1.0), (1, 1, 2.0), (2, 0, 1.0), (3, 0, 2.5), (3, 1, 2.5))
    long["open_tail_j"] = open_tails(long, parts, math.inf)
    # round 1: 8 J without tails; round 2: 4 J more, and the tail of device 0 that ended
    assert list(with_spending(short)["spent_j"]) == [8.0, 13.0]
    assert list(with_spending(long)["spent_j"])[:2] == [8.0, 13.0]


def test_without_rows_of_devices_the_tails_of_the_round_itself_are_left_out() -> None:
    rounds = rounds_of(2).assign(energy_tail_j=[1.0, 2.0])
    assert list(with_spending(rounds)["spent_j"]) == [8.0, 16.0]
    assert list(with_spending(rounds.assign(open_tail_j=math.nan))["spent_j"]) == [8.0, 16.0]
