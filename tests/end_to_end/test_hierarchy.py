"""Test runs with a cloud over cells: degenerate cases, resuming, and refused settings."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import edgefl
from edgefl.contract import SessionStart
from edgefl.engine.federation.cloud import BACKHAUL_BITS, BACKHAUL_J, BACKHAUL_S, CLOUD_VERSION, CLOUD_WAIT_S
from edgefl.learning.federation.cloud_stage import CloudTrainStage
from edgefl.run_directory.interruption import Interrupted
from tests.refusals import refused_at
from tests.tables import sections
from tests.tools.invariants import check_run

CLOUD = {"every": 2, "backhaul_bps": 1e7, "backhaul_latency_s": 0.02, "backhaul_j_per_bit": 1e-7}
COLUMNS = [CLOUD_VERSION, CLOUD_WAIT_S, BACKHAUL_S, BACKHAUL_BITS, BACKHAUL_J]
ISD_M = 60.0


def scenario(cells: int = 2, **changes: Any) -> edgefl.Scenario:
    """Return a scenario whose devices stand still, so that a cell has the same devices in every round."""
    sites = [[ISD_M * k, 0] for k in range(cells)]
    data = sections(f"""
        name=hierarchy; seed=3; layout={{sites: {sites}, federations: all}}; devices={{count: 8, mobility: static}}
        radio={{preset: journal, propagation: {{shadowing: spatial}}}}
        sessions={{name: schedule, count: 2, rounds: 5}}; cloud={CLOUD}
        learning={{dataset: digits, model: logistic, partition: iid, local: {{lr: 0.05, batch: 16, steps: 2}}}}
    """)
    for key, value in changes.items():
        data[key] = {**(data.get(key) or {}), **value} if isinstance(value, Mapping) else value
    return edgefl.load_scenario(data)


def run(what: edgefl.Scenario, path: Path, **how: Any) -> pd.DataFrame:
    out = edgefl.simulate(what, out=path, device="cpu", threads=1, **how)
    assert check_run(path) == []
    return out.rounds


def test_one_cell_learns_as_without_a_cloud_and_only_waits_for_its_line(tmp_path: Path) -> None:
    with_cloud = run(scenario(1), tmp_path / "with")
    without = run(scenario(1, cloud=None), tmp_path / "without")
    learned = ["accuracy", "loss", "version", "downlink_bits", "uplink_bits"]
    pd.testing.assert_frame_equal(with_cloud[learned], without[learned], check_exact=True)
    assert with_cloud.energy_j.to_numpy() == pytest.approx(without.energy_j.to_numpy())
    assert not {*COLUMNS} & {*without}
    later_s = with_cloud.latency_s - without.latency_s
    slot_s = 5e-4  # a round that begins within a slot waits for the next slot
    assert later_s.to_numpy() == pytest.approx(with_cloud.backhaul_s.to_numpy(), abs=slot_s)
    bits = (64 + 1) * 10 * 32  # size of a logistic regression model of the digits
    both_ways_s = 2 * (0.02 + bits / 1e7)
    assert with_cloud.backhaul_s.tolist() == pytest.approx([0, both_ways_s] * 5)
    assert with_cloud.backhaul_bits.tolist() == [0, 2 * bits] * 5
    assert with_cloud.energy_backhaul_j.tolist() == pytest.approx([0, 2 * bits * 1e-7] * 5)


def test_a_cloud_after_every_round_is_one_federation_of_all_devices(tmp_path: Path) -> None:
    """The cells learn like a single federation, except that rounding may change one prediction in a hundred."""
    cells = run(scenario(2, cloud={"every": 1}), tmp_path / "cells").groupby(["session", "round"])
    one = run(scenario(1, cloud=None), tmp_path / "one")
    assert (cells.participants.sum() == 8).all()
    assert (cells.participants.min() > 0).all()
    assert (cells.accuracy.max() == cells.accuracy.min()).all()
    assert cells.accuracy.max().to_numpy() == pytest.approx(one.accuracy.to_numpy(), abs=0.01)
    assert cells.loss.max().to_numpy() == pytest.approx(one.loss.to_numpy(), rel=1e-4)


@pytest.mark.parametrize("waits_for", ["cells", "nobody"])
def test_a_run_goes_on_from_any_exchange(
    tmp_path: Path, waits_for: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run resumes after several interruptions, each before a cell sends its model or adopts the cloud's model."""
    what = scenario(2, cloud={"waits_for": waits_for}, rounds={"server": "synchronous"})
    run(what, tmp_path / "whole")
    left: set[tuple[str, int]] = set()

    def leaves(verb: str) -> Any:
        real, calls = getattr(CloudTrainStage, verb), iter(range(1000))

        def leave(stage: CloudTrainStage, *asked: Any, **named: Any) -> Any:
            if (at := (verb, next(calls))) not in left and at[1] in (0, 3):
                left.add(at)
                raise KeyboardInterrupt
            return real(stage, *asked, **named)

        return leave

    path = tmp_path / "left"
    for _ in range(10):
        with monkeypatch.context() as patched:
            for verb in ("submit", "adopt"):
                patched.setattr(CloudTrainStage, verb, leaves(verb))
            try:
                if path.exists():
                    edgefl.resume(path, threads=1, snapshot_rounds=1)
                else:
                    edgefl.simulate(what, out=path, device="cpu", threads=1, snapshot_rounds=1)
            except Interrupted:
                continue
        break
    assert len(left) > 2
    for table in ("rounds.csv", "devices.csv", "events.csv", "ledger.csv"):
        assert (path / table).read_bytes() == (tmp_path / "whole" / table).read_bytes()


def test_a_learner_from_outside_has_no_cloud(tmp_path: Path) -> None:
    class Theirs:
        flops_per_sample, payload_bits = 1.0, 8

        def session(self, start: SessionStart) -> None: ...

    workload = {"payload_bits": 8, "flops_per_sample": 1.0}
    with refused_at("", "models"):
        edgefl.simulate(
            scenario(2, learning=None, workload=workload), out=tmp_path / "out", learner=lambda told: Theirs()
        )
