"""Test the lines and the legend of the figure of concept drift."""

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure

from edgefl.analysis.reports.drift import drift_figure

NAMES = {"slow": 30.0, "never": float("inf"), "quick": 2.0}  # rounds to recovery
ROUNDS, FIRST = 1000, 501


@pytest.fixture(scope="module")
def figure() -> Figure:
    return drawn((1,))


def drawn(seeds: tuple[int, ...], first: int = FIRST, share: float = 1.0) -> Figure:
    """Draw three variants; the drift of `slow` begins in the round `first`, with a share of the devices."""
    firsts = dict.fromkeys(NAMES, FIRST) | {"slow": first}
    table = pd.DataFrame(
        [
            {"change": 1, "variant": name, "first_round_mean": firsts[name], "last_round_mean": firsts[name]}
            | {"recovery_rounds_mean": rounds}
            for name, rounds in NAMES.items()
        ]
    )
    number = np.arange(1, ROUNDS + 1)
    alike = pd.DataFrame({"number": number, "start_s": number - 1, "end_s": number})
    alike = alike.assign(drifted=1.0 * (number >= FIRST), accuracy=np.where(number < FIRST, 0.8, 0.2))
    rounds = pd.concat([alike.assign(variant=name) for name in NAMES])
    rounds["drifted"] *= np.where(rounds["variant"] == "slow", share, 1.0)
    return drift_figure(table, pd.concat([rounds.assign(seed=seed) for seed in seeds]), "slow")


def test_running_means_stop_at_the_drift(figure: Figure) -> None:
    for line in figure.axes[0].lines[: len(NAMES)]:
        assert sorted({round(y, 9) for y in line.get_ydata()}) == [20.0, 80.0]


def test_the_heading_says_over_how_many_rounds_and_seeds_is_averaged(figure: Figure) -> None:
    """1,000 rounds are drawn as 200 means of 5 rounds, as the heading says."""
    for one, begins in (
        (figure, "Running mean over 5 rounds"),
        (drawn((1, 2)), "Mean of 2 seeds. Running mean over 5"),
    ):
        (said,) = (text.get_text() for text in one.texts if "Running mean" in text.get_text())
        assert said.startswith(begins)


@pytest.mark.parametrize(("share", "told"), [(1.0, ["100 % drifted"]), (0.2, [])])
def test_no_mean_of_different_shares_is_written(share: float, told: list[str]) -> None:
    figure = drawn((1,), share=share)
    assert [text.get_text() for text in figure.axes[0].texts if "%" in text.get_text()] == told
    assert any("differ by variant" in text.get_text() for text in figure.texts) == (share < 1)


def test_no_tick_stands_between_two_rounds() -> None:
    by_round = drawn((1,)).axes[0]
    by_round.set_xlim(0, 2)
    assert not np.mod(by_round.get_xticks(), 1).any()


def test_time_begins_at_the_drift(figure: Figure) -> None:
    """The drift's round ends 1 s after the drift, as each round takes 1 s; `never` is drawn up to its last round."""
    line = figure.axes[1].lines[0]
    since = dict(zip(line.get_ydata().tolist(), line.get_xdata().tolist(), strict=True))
    assert since[80.0] == 0.0  # the last round before the drift
    assert figure.axes[1].get_xlim()[1] == ROUNDS - FIRST + 1


def test_time_begins_at_the_drift_of_each_variant() -> None:
    """With a clock of seconds, a slower variant meets the drift in an earlier round: here 100 rounds, or 100 s."""
    lines = drawn((1,), FIRST - 100).axes[1].lines
    ends = [line.get_xdata()[-1] for line in lines[: len(NAMES)]]
    assert ends == [ROUNDS - FIRST + 101, ROUNDS - FIRST + 1, ROUNDS - FIRST + 1]


def test_the_legend_begins_with_who_is_back_first(figure: Figure) -> None:
    texts = [text.get_text() for text in figure.legends[0].get_texts()]
    assert texts == ["quick  (2)", "slow  (30)", "never  (∞)"]
