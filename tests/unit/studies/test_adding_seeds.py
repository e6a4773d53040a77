"""Test which seeds a study's question adds, with known differences in place of simulations."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from edgefl.analysis.measures.sequential import interval, pairs_wanted
from edgefl.studies import StudyPlan, ask, plan
from edgefl.studies.adding_seeds import Seeds, Setting, pairs
from tests.refusals import refused_at
from tests.unit.studies.asked import GRID, STUDY, written

EASY, HARD = ((("bandwidth", label),) for label in ("1 MHz", "2 MHz"))
ERROR, STUDIES, SURE = 0.05, 300, 1e-6


class World:
    """A study that only records its runs, and draws pair differences of mean zero from seeds."""

    def __init__(self, salt: int = 0, deviations: Mapping[Setting, float] | None = None) -> None:
        self.done: list[list[str]] = []
        self.salt = salt
        self.deviations = deviations or {}
        self.seen: dict[Setting, tuple[float, float, int]] = {}

    def carry_out(self, study: StudyPlan) -> Path:
        self.done.append([str(run.path) for run in study.runs])
        return Path("out")

    def look(self, path: Path, seeds: Seeds) -> dict[Setting, int]:
        wanted = {}
        for setting, own in seeds.items():
            scale = self.deviations.get(setting, 1.0)
            found = interval([scale * np.random.default_rng([self.salt, s]).normal() for s in own], ERROR)
            self.seen[setting] = found.low, found.high, len(own)
            enough = found.half_width <= 0.5 or len(own) >= 40
            wanted[setting] = len(own) if enough else pairs_wanted(found, 0.5, ERROR, 40)
        return wanted


def test_seeds_are_added_in_pairs_after_the_studys_own(tmp_path: Path) -> None:
    world = World()
    first = plan(written(tmp_path))
    ask(first, world.carry_out(first), world.carry_out, world.look)
    assert world.done[0] == [f"{name}/seed-{seed}" for seed in (4, 2) for name in ("a", "b", "other")]
    assert world.done[1] == ["a/seed-5", "b/seed-5", "a/seed-6", "b/seed-6"]
    added = [path for step in world.done[1:] for path in step]
    assert len(set(added)) == len(added), "no run is repeated"
    low, high, pairs = world.seen[()]
    assert high - low <= 1.0
    assert len(added) == 2 * (pairs - 2)


def test_overrides_change_all_variants_but_not_their_own_keys(tmp_path: Path) -> None:
    """Runs with added seeds have the same overrides."""
    first = plan(written(tmp_path), overrides=["devices.count=3"])
    for runs in (first.runs, pairs(first, {(): (9,)}).runs):
        counts = {run.member.variant: run.scenario.devices.count for run in runs}
        assert {name: counts[name] for name in ("a", "b")} == {"a": 3, "b": 5}
    with refused_at("", "--set devices.cuont=3", "did you mean"):
        plan(written(tmp_path), overrides=["devices.cuont=3"])


def test_only_settings_that_are_not_known_get_more(tmp_path: Path) -> None:
    world = World(deviations={EASY: 0.01})
    first = plan(written(tmp_path, STUDY + GRID))
    ask(first, world.carry_out(first), world.carry_out, world.look)
    assert world.seen[EASY][2] < world.seen[HARD][2]
    assert all("2-MHz" in path for path in world.done[-1])


def test_answers_miss_as_rarely_as_stated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If earlier results decide on more seeds, at most 5 % of the final intervals miss the true difference, 0."""
    first = plan(written(tmp_path))
    # added runs need no plan
    monkeypatch.setattr("edgefl.studies.adding_seeds.pairs", lambda first, added: first)
    missed, stops = 0, set()
    for salt in range(STUDIES):
        world = World(salt)
        ask(first, world.carry_out(first), world.carry_out, world.look)
        low, high, pairs = world.seen[()]
        missed += not low <= 0.0 <= high
        stops.add(pairs)
    assert missed <= stats.binom.isf(SURE, STUDIES, ERROR)
    assert len(stops) > 3, "studies stop at different numbers of pairs"


@pytest.mark.parametrize(
    ("old", "new", "place", "noun"),
    [
        ("[a, b]", "[a, c]", "question.variants", "'c'"),
        ("budget: 40", "budget: 1", "question.budget", 1),
        ("seeds: [4, 2]", f"seeds: {list(range(50))}", "question.budget", "50 seeds"),
        ("latency_s", "latency", "question.metric", "latency"),
        ("latency_s", "seconds_to_target", "question.target", "seconds_to_target"),
        ("budget: 40", "budget: 40, target: 0.8", "question.target", "latency_s"),
        ("latency_s", "seconds_to_target, target: 95%", "question.target", "reference"),
        ("latency_s", "seconds_to_target, target: 95% of c", "question.target", "'c'"),
        ("latency_s", "seconds_to_target, target: most", "question.target", "'most'"),
        ("latency_s", "seconds_to_target, target: 80", "question.target", 80),
    ],
)
def test_invalid_questions_are_refused(old: str, new: str, place: str, noun: object, tmp_path: Path) -> None:
    with refused_at(place, noun):
        plan(written(tmp_path, STUDY.replace(old, new)))
