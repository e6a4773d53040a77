"""The figure of concept drift: what its lines and its legend say."""

import pandas as pd
import pytest

from analysis.drift_reading import Reading
from analysis.figures.drift import drift_figure
from analysis.results import DriftComparison

NAMES = {"slow": 30.0, "never": float("inf"), "quick": 2.0}  # rounds until recovered
ROUNDS, FIRST = 1000, 501


@pytest.fixture(scope="module")
def figure(tmp_path_factory: pytest.TempPathFactory):  # type: ignore[no-untyped-def]
    table = pd.DataFrame(
        [
            {"change": 1, "variant": name, "first_round_mean": FIRST, "last_round_mean": FIRST}
            | {"recovery_rounds_mean": rounds}
            for name, rounds in NAMES.items()
        ]
    )
    rounds = pd.concat(
        [
            pd.DataFrame(
                {
                    "variant": name,
                    "seed": 1,
                    "number": range(1, ROUNDS + 1),
                    "accuracy": [0.8 if number < FIRST else 0.2 for number in range(1, ROUNDS + 1)],
                    "start_s": range(ROUNDS),
                    "end_s": range(1, ROUNDS + 1),
                }
            )
            for name in NAMES
        ]
    )
    comparison = DriftComparison(
        table=table,
        detail=table,
        figure=tmp_path_factory.mktemp("figure") / "drift.png",
        reference="slow",
        seeds=(1,),
        reading=Reading(),
        notes=(),
    )
    return drift_figure(comparison, rounds, [(FIRST, ROUNDS, 1.0)])


def test_running_means_stop_at_the_drift(figure) -> None:  # type: ignore[no-untyped-def]
    for line in figure.axes[0].lines[: len(NAMES)]:
        assert sorted({round(y, 9) for y in line.get_ydata()}) == [20.0, 80.0]


def test_time_begins_at_the_drift(figure) -> None:  # type: ignore[no-untyped-def]
    """Each round takes a second: the drift's ends one second after its beginning; `never` is shown to its end."""
    line = figure.axes[1].lines[0]
    since = dict(zip(line.get_ydata().tolist(), line.get_xdata().tolist(), strict=True))
    assert since[80.0] == 0.0  # the last round before
    assert figure.axes[1].get_xlim()[1] == ROUNDS - FIRST + 1


def test_the_legend_begins_with_who_is_back_first(figure) -> None:  # type: ignore[no-untyped-def]
    texts = [text.get_text() for text in figure.legends[0].get_texts()]
    assert texts == ["quick  (2)", "slow  (30)", "never  (∞)"]
