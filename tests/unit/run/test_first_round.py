"""Test the estimated length of a run's first round, and notes about this round before the run."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from edgefl.engine.air.radio_round import RadioRound
from edgefl.engine.federation.rounds import Rounds, Selection
from edgefl.run.api import simulate
from edgefl.run.plan import prepare
from edgefl.run.simulation import carry_out
from edgefl.scenario import scenario


def test_a_deadline_in_which_no_update_can_arrive_is_noted(digits: Path) -> None:
    """A downlink and an uplink take at least two slots of 0.5 ms, so a shorter deadline is noted."""
    (note,) = prepare(scenario.load(digits, ["rounds.deadline_s=1.0e-5"]), device="cpu").notes
    assert note.startswith("rounds.deadline_s 1e-05: almost no update can arrive in time; the fastest device")
    assert prepare(scenario.load(digits, ["rounds.deadline_s=10"]), device="cpu").notes == []


DAY = ["sessions={name: daily, count: 2, at_hours: [0, 12]}", "learning.pilot_sessions=1"]


def test_a_day_of_rounds_that_follow_one_another_at_once_is_noted(digits: Path) -> None:
    """Rounds without pauses in two sessions of twelve hours are noted."""
    (note,) = prepare(scenario.load(digits, DAY), device="cpu").notes
    assert note.startswith("rounds follow each other without a pause for 86,400 s: about ")
    assert note.endswith("set rounds.every_s or rounds.pause_s")
    for remedy in ("rounds.every_s=60", "rounds.pause_s=60", "duration_s=60"):
        assert prepare(scenario.load(digits, [*DAY, remedy]), device="cpu").notes == []


def test_a_rounds_length_is_that_without_fading(digits: Path, tmp_path: Path) -> None:
    """Rayleigh fading lowers a rate, 4 bit/s/Hz or more here, by less than 1 (0.83, Euler's constant over ln 2).

    A round of 200 Mbit each way is therefore longer than in the note on the deadline, by less than a third.
    """
    workload = ["learning=null", "workload={payload_bits: 2.0e+8, flops_per_sample: 1}"]
    overrides = [*workload, "devices.count=1", "radio.preset=journal"]
    plan = prepare(scenario.load(digits, [*overrides, "rounds.deadline_s=0.01"]), device="cpu")
    (note,) = plan.notes
    said_s = float(note.split()[-2])
    done = simulate(scenario.load(digits, overrides), tmp_path / "run", device="cpu")
    assert said_s < done.rounds.latency_s.iloc[0] < 4 / 3 * said_s


SHARED = [
    "learning=null",
    "workload={payload_bits: 1.0e+6, flops_per_sample: 1}",
    "devices.count=40",
    "radio={preset: nr, sharing: dynamic, scheduler: equal_share}",
    "federations={phones: {share: 0.5}, meters: {share: 0.5}}",
    "rounds.selector={name: uniform, count: 3}",
]


@pytest.mark.parametrize(
    ("overrides", "servers"),
    [
        pytest.param(["rounds.selector={name: uniform, count: 3}"], 1, id="alone"),
        pytest.param(SHARED, 2, id="federations"),
        pytest.param(["rounds.server={name: fedbuff, buffer: 2, concurrency: 2}"], 1, id="concurrency"),
    ],
)
def test_the_round_that_is_opened_before_the_run_is_the_runs_first(
    overrides: list[str], servers: int, digits: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The rehearsed round and the run's first round have the same participants, links, and random numbers."""
    opened: list[tuple[Any, ...]] = []
    open_ = Rounds.open

    def noting(rounds: Rounds, selection: Selection, *bits: Sequence[int]) -> RadioRound:
        of = open_(rounds, selection, *bits)
        snr = of.links.snr["uplink"].tolist()
        opened.append((rounds.seat, selection.large_scale.key, list(selection.ids), snr))
        return of

    monkeypatch.setattr(Rounds, "open", noting)
    plan = prepare(scenario.load(digits, overrides), device="cpu")
    before, opened[:] = list(opened), []
    carry_out(plan, tmp_path / "run")
    firsts = {seat: one for seat, *one in reversed(opened)}
    assert len(before) == servers
    assert {seat: one for seat, *one in before} == firsts
