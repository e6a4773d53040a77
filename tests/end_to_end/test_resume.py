"""A run that was killed or interrupted goes on, and nobody can tell."""

import json
import signal
from pathlib import Path

import pytest
import simpy

from analysis.load import load_runs
from edgefl import load_scenario, simulate
from edgefl.engine.records import Round
from edgefl.errors import EdgeflError
from edgefl.rng import Streams
from edgefl.run.composition import compose
from edgefl.run.resuming import resume
from edgefl.run_directory.interruption import Interrupted
from edgefl.run_directory.journal import FILE, FORMAT
from edgefl.run_directory.replay import ReplayLearner
from edgefl.run_directory.results import RunDirectory
from edgefl.run_directory.seal import sealed, unsealed
from edgefl.run_directory.snapshot import Every
from edgefl.scenario.world import World
from edgefl.testing import Rows
from tests.tools import kill

ROUND = 9  # of 15: a session's second


@pytest.fixture
def undisturbed(digits: Path, tmp_path: Path) -> Path:
    return simulate(load_scenario(digits), tmp_path / "undisturbed", device="cpu")


def left(digits: Path, out: Path, error: BaseException) -> int:
    """Leave a run in its ROUND-th round; returns how many there were."""
    rounds = 0

    def leave(row: Round) -> None:
        nonlocal rounds
        rounds += 1
        if rounds == ROUND:
            raise error

    with pytest.raises(type(error)):
        simulate(load_scenario(digits), out, device="cpu", on_round=leave, every=Every(rounds=4))
    return rounds


@pytest.mark.parametrize("error", [Interrupted(signal.SIGTERM), RuntimeError("a fault")])
def test_a_run_goes_on(digits: Path, tmp_path: Path, undisturbed: Path, error: BaseException) -> None:
    run = tmp_path / "run"
    assert left(digits, run, error) == ROUND
    status = json.loads((run / "run.json").read_text())["status"]
    assert status == ("interrupted" if isinstance(error, Interrupted) else "failed")
    notes: list[str] = []
    resume(run, on_note=notes.append)
    assert kill.differences(run, undisturbed) == []
    assert notes == []
    assert not (run / "snapshots").exists()
    with pytest.raises(EdgeflError, match="is complete"):
        resume(run)


def test_another_scenario_is_not_this_run(digits: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    left(digits, run, RuntimeError())
    text = (run / "scenario.yaml").read_text()
    (run / "scenario.yaml").write_text(text.replace("lr: 0.05", "lr: 0.06"))
    with pytest.raises(
        EdgeflError, match=r"learning.lr is 0.06, was 0.05; undo that, or start anew: edgefl run"
    ):
        resume(run)


def test_a_run_of_the_version_before_is_read_and_not_gone_on_with(digits: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    left(digits, run, RuntimeError())
    first, *others = (run / FILE).read_bytes().splitlines(keepends=True)
    begun = unsealed(first)
    assert begun is not None
    (run / FILE).write_bytes(b"".join([sealed({**begun, "journal": FORMAT - 1}).encode(), *others]))
    with pytest.raises(EdgeflError, match=f"has format {FORMAT - 1}, .* reads {FORMAT}; use the edgefl that"):
        resume(run)
    assert len(load_runs(run, partial=True).rounds), "its sessions that have ended"


def test_a_run_without_learning_starts_again(tmp_path: Path) -> None:
    file = tmp_path / "radio.yaml"
    file.write_text(
        "name: radio\nseed: 1\ndevices: {count: 4}\nsessions: {name: schedule, count: 2, rounds: 6}\n"
        "workload: {payload_bits: 1.0e+5, flops_per_sample: 1.0e+6}\n"
    )
    undisturbed = simulate(load_scenario(file), tmp_path / "undisturbed")
    run = tmp_path / "run"
    left(file, run, Interrupted())
    assert not (run / "journal.jsonl").exists()
    resume(run)
    assert kill.differences(run, undisturbed) == []


def test_a_training_runs_again_over_another_radio(digits: Path, tmp_path: Path) -> None:
    """The same devices take part and arrive over a fifth of the band, later: nothing has to be trained again."""
    trained = simulate(load_scenario(digits), tmp_path / "trained", device="cpu")
    narrow = load_scenario(digits, ["radio.bandwidth_hz=20e6"])
    undisturbed = simulate(narrow, tmp_path / "narrow", device="cpu")
    world = World(narrow, Streams(narrow.seed))
    with RunDirectory(tmp_path / "replayed", narrow.described, {}) as run:
        learners = {cell: ReplayLearner(trained / "journal.jsonl", cell) for cell in world.federations}
        simulation, servers = compose(world, world.radio(simpy.Environment()), run, learners)
        env = simulation.env
        env.run(until=env.all_of([env.process(one.run()) for one in servers.values()]))
        run.complete()
    for table in ("rounds.csv", "devices.csv", "sessions.csv", "events.csv"):
        assert (tmp_path / "replayed" / table).read_bytes() == (undisturbed / table).read_bytes()
    rounds = (trained / "rounds.csv").read_bytes()
    assert rounds != (undisturbed / "rounds.csv").read_bytes(), "another radio takes another time"


def test_another_population_is_not_this_training(digits: Path, tmp_path: Path) -> None:
    trained = simulate(load_scenario(digits), tmp_path / "trained", device="cpu")
    fewer = load_scenario(digits, ["rounds.selector={name: uniform, count: 3}"])
    world = World(fewer, Streams(fewer.seed))
    learner = ReplayLearner(trained / "journal.jsonl", 0)
    simulation, servers = compose(world, world.radio(simpy.Environment()), Rows(), {0: learner})
    with pytest.raises(EdgeflError, match=r"this run asks to train with ids"):
        simulation.env.run(until=simulation.env.process(servers[0].run()))


def test_a_run_by_the_clock_goes_on(digits: Path, tmp_path: Path) -> None:
    """The journal holds no times: those of the rounds, and the learning rates that follow them, come about again."""
    file = tmp_path / "clock.yaml"
    lines = [line for line in digits.read_text().splitlines() if not line.startswith("sessions:")]
    file.write_text(
        "\n".join(lines)
        + "\nduration_s: 130\nsessions: {name: interval, length_s: 45}\nrounds: {every_s: 10, server_s: 1}\n"
    )
    undisturbed, run = (tmp_path / name for name in ("undisturbed", "run"))
    simulate(load_scenario(file), undisturbed, device="cpu")
    left(file, run, RuntimeError("a fault"))
    resume(run)
    assert kill.differences(run, undisturbed) == []
    about = json.loads((run / "run.json").read_text())
    assert about["simulated_s"] == 130.0
