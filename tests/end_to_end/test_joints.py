"""Test some cases of `make joints`: feature combinations break no rule, and runs agree with the references."""

from pathlib import Path
from random import Random

import pytest

import edgefl
from edgefl.errors import EdgeflError
from tests.faults.injecting import edited
from tests.tools.joints.__main__ import REFERENCES
from tests.tools.joints.references.reading import Compared
from tests.tools.joints.scenarios import FEATURES, drawn
from tests.tools.joints.trial import trial

SEED, DRAWS, CASES, MOST_CASES = 43, 16, 2, 12
# reference -> faults that the comparison with it must detect
A3, UPDATES = "edgefl.engine.cells.handover:EventA3", "edgefl.learning.updates"
FEDERATION = "edgefl.engine.federation"
VERSION, LATER = "version - %s.version", "version + 1 - %s.version"
FAULTS = {
    "band": [
        ("edgefl.channel.tdd:Pattern.weights", "symbols / SYMBOLS_PER_SLOT", "1.0"),
        ("edgefl.channel.band_slots:Groups.parts", "self.weights[group] / together", "1.0 / len(there)"),
    ],
    "handovers": [
        (f"{A3}.__init__", "settings.a3_offset_db + settings.hysteresis_db", "settings.a3_offset_db"),
        (f"{A3}.measure", "first_s + self._trigger_s", "first_s"),
    ],
    "asynchronous": [
        (f"{UPDATES}.arrivals:Arrivals.of", VERSION % "update.round", LATER % "update.round"),
        (f"{FEDERATION}.work:WorkUnderWay.take", VERSION % "done.dispatch", LATER % "done.dispatch"),
    ],
    "cloud": [
        (f"{FEDERATION}.cloud:Cloud._look", "if not self._waiting or (waits", "if (False and waits"),
        (
            "edgefl.learning.federation.cloud_stage:CloudModels.mean",
            "(self._samples[first] / whole)",
            "(1 / len(cells))",
        ),
    ],
}


@pytest.fixture(autouse=True)
def _in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("number", range(DRAWS))
def test_a_combination_of_features_keeps_the_rules(number: int) -> None:
    draw = drawn(SEED, number)
    ended = trial(draw)
    assert ended.broken == (), (draw.features, ended.said)


def test_most_draws_run() -> None:
    """Most drawn scenarios are accepted, draws are reproducible, and `without` leaves out one feature."""
    draws = [drawn(SEED, number) for number in range(200)]
    assert {feature for draw in draws for feature in draw.features} == {*FEATURES}
    accepted = 0
    for draw in draws[:20]:
        assert draw.text == drawn(SEED, draw.number).text
        assert len(draw.without(draw.features[0]).features) == len(draw.features) - 1
        try:
            edgefl.load_scenario({**draw.data, "devices": {**draw.data["devices"], "mobility": "static"}})
        except EdgeflError:
            continue
        accepted += 1
    assert accepted > 12


def compared(name: str, folder: Path) -> Compared:
    """Compare a few runs with a reference."""
    all_ = Compared()
    for number in range(CASES):
        (folder / str(number)).mkdir()
        one = REFERENCES[name](Random(f"{name} {SEED} {number}"), folder / str(number))
        all_ = Compared(all_.many + one.many, all_.wrong + one.wrong)
    return all_


@pytest.mark.parametrize("name", REFERENCES)
def test_runs_are_as_the_reference_says(name: str, tmp_path: Path) -> None:
    found = compared(name, tmp_path)
    assert found.wrong == []
    assert found.many > 10


@pytest.mark.parametrize(
    ("name", "number"), [(name, k) for name, of in FAULTS.items() for k in range(len(of))]
)
def test_a_reference_notices_a_fault(
    name: str, number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    edited(*FAULTS[name][number])(monkeypatch)
    for case in range(MOST_CASES):
        (tmp_path / str(case)).mkdir()
        try:
            found = REFERENCES[name](Random(f"{name} {SEED} {case}"), tmp_path / str(case))
        except (EdgeflError, RuntimeError, KeyError):  # the fault stopped the run, or made it omit rows
            return
        if found.wrong:
            return
    pytest.fail(f"the fault was not found in {MOST_CASES} runs")
