"""Test that a run resumes as if it had not been interrupted, wherever its journal ends."""

import heapq
import json
import math
import shutil
import tempfile
from collections.abc import Callable, Generator, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from edgefl.contract import BEGIN, Evaluation, LocalRound, Now, Opening, SessionStart, Stage, StageFacts
from edgefl.errors import EdgeflError
from edgefl.run_directory.interruption import Interrupted
from edgefl.run_directory.journal import FILE, FOLDER, Journal
from edgefl.run_directory.plain import decoded, encoded, words
from edgefl.run_directory.replay import JournaledLearner
from edgefl.run_directory.seal import sealed, unsealed
from edgefl.run_directory.snapshot import Every, Snapshots
from tests.refusals import refused_at

EVERY, NEVER = Every(rounds=3), Every(rounds=10**9)
LAST_LINES = 3
PYTORCH_ALIGNS_TO = 64  # bytes, c10/core/alignment.h
NEWLINE = b"\n"
DEVICES, SESSIONS, ROUNDS, CELLS = 6, 2, 3, 2
CIRCUMSTANCES = {"edgefl": "0.1.0", "scenario.yaml": "learning: {local: {lr: 0.05}}", "device": "cpu"}


class Training:
    """Models of all cells, and vectors that devices take from cell to cell."""

    def __init__(self) -> None:
        self.kept = torch.zeros(DEVICES, 2)
        self.learners = {cell: FakeLearner(cell, self) for cell in range(CELLS)}
        self.restored = 0

    def state(self) -> tuple[dict[str, Tensor], dict[str, Any]]:
        tensors = {"kept": self.kept}
        for cell, learner in self.learners.items():
            tensors[f"model {cell}"] = learner.model
        return tensors, {str(cell): learner.position for cell, learner in self.learners.items()}

    def restore(self, tensors: dict[str, Tensor], facts: dict[str, Any]) -> None:
        self.restored += 1
        self.kept = tensors["kept"].clone()
        for cell, learner in self.learners.items():
            learner.model = tensors[f"model {cell}"].clone()
            learner.position = facts[str(cell)]


class FakeLearner:
    """A learner whose numbers depend on all earlier calls, as the results of training do.

    Attributes:
        trained: number of rounds that were trained, not replayed.
    """

    sees_time = False
    flops_per_sample = 1.0
    payload_bits = 64

    def __init__(self, cell: int, training: Training) -> None:
        self.cell = cell
        self.all = training
        self.model = torch.tensor([0.1 + cell, 0.7])
        self.position = [0, 0]  # session, stage
        self.trained = 0
        self.pending: dict[int, Tensor] = {}

    def session(self, start: SessionStart) -> Iterator[Stage]:
        self.position = [start.number, 0]
        yield FakeStage(self)
        self.model = self.model * 0.9
        self.position = [start.number, 1]
        yield FakeStage(self)
        self.model = self.model + self.all.kept.mean()

    def stages(self) -> Iterator[Stage]:
        yield FakeStage(self)
        session, stage = self.position
        if stage == 0:
            self.model = self.model * 0.9
            self.position = [session, 1]
            yield FakeStage(self)
        self.model = self.model + self.all.kept.mean()


class FakeStage:
    def __init__(self, learner: FakeLearner) -> None:
        self._learner = learner
        probes = learner.position[1] == 0
        opening = None if probes else Opening("previous", {1: 1 / 3}, [0, 1], 0.1, float(learner.model[0]))
        phase, rounds = ("probe", 1) if probes else ("train", None)
        self.facts = StageFacts(phase, rounds, 0.5, not probes, opening)

    def train(self, ids: Sequence[int], round_: int, now: Now = BEGIN) -> LocalRound:
        learner = self._learner
        learner.trained += 1
        kept, count = learner.all.kept, len(ids)
        learner.pending = {id_: torch.sin(learner.model * (id_ + round_) + kept[id_]) for id_ in ids}
        iterations = tuple(3 + id_ % 2 for id_ in ids)
        loss = tuple(float(learner.model[0]) / (id_ + 3) if id_ % 3 else None for id_ in ids)
        return LocalRound(tuple(ids), iterations, (16,) * count, (64,) * count, (64,) * count, {"loss": loss})

    def aggregate(self, ids: Sequence[int]) -> None:
        learner = self._learner
        for id_ in ids:
            learner.model = learner.model + learner.pending[id_] / len(ids)
            learner.all.kept[id_] += learner.pending[id_]
        learner.pending = {}

    def evaluate(self, present: Sequence[int] = ()) -> Evaluation | None:
        return Evaluation(0.5, float(self._learner.model.sum()))


def server(
    cell: int, learner: Any, rows: list[Any], *, arriving: Callable[[int, int], bool]
) -> Generator[float, None, None]:
    """Run a cell's sessions, and yield each round's duration, which depends on the learner's answers."""
    for session in range(1, SESSIONS + 1):
        ids = tuple(range(DEVICES))[cell::CELLS]
        for stage in learner.session(SessionStart(session, ids, ROUNDS)):
            rows.append((cell, session, stage.facts))
            for round_ in range(1, (stage.facts.rounds or ROUNDS) + 1):
                local = stage.train(ids, round_)
                losses = [loss or 0.0 for loss in local.scalars["loss"]]
                yield 1.0 + sum(local.iterations) + 0.3 * cell + abs(sum(losses)) % 1
                arrived = [id_ for id_ in ids if arriving(id_, round_)]
                if arrived:
                    stage.aggregate(arrived)
                evaluation = stage.evaluate() if stage.facts.evaluates else None
                rows.append((cell, session, round_, local, evaluation))


def engine(
    learners: dict[int, Any],
    *,
    arriving: Callable[[int, int], bool] = lambda id_, round_: (id_ + round_) % 4 > 0,
) -> list[Any]:
    """Run all cells, and return everything that their servers have seen, with times."""
    rows: list[Any] = []
    servers = {cell: server(cell, learner, rows, arriving=arriving) for cell, learner in learners.items()}
    queue = [(0.0, cell) for cell in learners]
    while queue:
        now, cell = heapq.heappop(queue)
        step = next(servers[cell], None)
        rows.append((now, cell))
        if step is not None:
            heapq.heappush(queue, (now + step, cell))
    return rows


def run(
    directory: Path, every: Every, notes: Any = None, training: Training | None = None, **engine_: Any
) -> tuple[list[Any], Journal]:
    """Start or resume a run, and leave it without cleaning up, as a killed process does."""
    directory.mkdir(exist_ok=True)
    training = training or Training()
    on_note = ([] if notes is None else notes).append
    journal = Journal(directory, CIRCUMSTANCES, training, every=every, on_note=on_note)
    return engine(journaled(training, journal), **engine_), journal


def journaled(training: Training, journal: Journal) -> dict[int, Any]:
    return {cell: JournaledLearner(one, cell, journal) for cell, one in training.learners.items()}


@pytest.fixture(scope="module")
def left(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[Any]]:
    """Return the directory of a run that was killed at its end, and everything that its servers have seen."""
    directory = tmp_path_factory.mktemp("run")
    rows, _ = run(directory, every=EVERY)
    return directory, rows


@pytest.fixture
def copy(left: tuple[Path, list[Any]], tmp_path: Path) -> Path:
    return Path(shutil.copytree(left[0], tmp_path / "copy"))


def bare(rows: list[Any]) -> list[Any]:
    """Convert the opening's labels to a tuple, as a journal returns them."""
    return json.loads(json.dumps([str(row).replace("[0, 1]", "(0, 1)") for row in rows]))


def test_the_engine_sees_what_it_sees_without_a_journal(left: tuple[Path, list[Any]]) -> None:
    assert bare(engine(dict(Training().learners))) == bare(left[1])


def test_some_snapshot_lies_between_a_train_and_its_aggregate(left: tuple[Path, list[Any]]) -> None:
    entries = [json.loads(line) for line in (left[0] / FILE).read_bytes().splitlines()[1:]]
    pending = []
    for path in (left[0] / FOLDER).glob("*.safetensors"):
        last: dict[int, str] = {}
        for entry in entries[: int(path.stem)]:
            last[entry["cell"]] = entry["call"]
        pending += [call for call in last.values() if call == "train"]
    assert pending


def resumed(directory: Path, rows: list[Any], journal: bytes) -> tuple[Training, list[str]]:
    """Resume a copy of a run with this journal; compare what its engine sees, and the final journal."""
    whole = (directory / FILE).read_bytes()
    with tempfile.TemporaryDirectory() as scratch:
        copy = Path(shutil.copytree(directory, Path(scratch) / "copy"))
        (copy / FILE).write_bytes(journal)
        training, notes = Training(), list[str]()
        again, _ = run(copy, every=NEVER, notes=notes, training=training)
        assert again == rows
        assert (copy / FILE).read_bytes() == whole
    return training, notes


def test_cut_anywhere(left: tuple[Path, list[Any]]) -> None:
    """The journal may end at any byte of its last lines, and at the end of any other line."""
    whole = (left[0] / FILE).read_bytes()
    ends = [position + 1 for position, byte in enumerate(whole) if byte == ord("\n")]
    restored = set()
    for size in [0, *ends, *range(ends[-LAST_LINES - 1] + 1, len(whole))]:
        training, notes = resumed(*left, whole[:size])
        restored.add(training.restored)
        again = any("starts again from" in note for note in notes)
        assert bool(training.restored) != again or size <= ends[0]
        torn = f"line {whole[:size].count(NEWLINE) + 1} is damaged"
        assert any(torn in note for note in notes) == (size not in (0, *ends))
    assert restored == {0, 1}


def test_flipped_bits(left: tuple[Path, list[Any]]) -> None:
    whole = (left[0] / FILE).read_bytes()
    for position in range(0, len(whole), 89):
        flipped = bytearray(whole)
        flipped[position] ^= 1 << position % 8
        _, notes = resumed(*left, bytes(flipped))
        assert "is damaged" in notes[0]


def test_only_what_comes_after_the_snapshot_is_trained(copy: Path) -> None:
    training, undisturbed = Training(), Training()
    engine(dict(undisturbed.learners))
    run(copy, every=EVERY, training=training)
    trained, all_ = (sum(one.trained for one in all_.learners.values()) for all_ in (training, undisturbed))
    assert 0 < trained < all_ / 2


@pytest.mark.parametrize("harm", ["cut", "flip", "no sidecar", "sidecar flipped"])
def test_a_damaged_snapshot_is_skipped(copy: Path, left: tuple[Path, list[Any]], harm: str) -> None:
    older, newest = sorted((copy / FOLDER).glob("*.safetensors"))
    sidecar = newest.with_suffix(".json")
    content, facts = bytearray(newest.read_bytes()), bytearray(sidecar.read_bytes())
    if harm == "cut":
        newest.write_bytes(content[:-1])
    elif harm == "flip":
        content[-1] ^= 1
        newest.write_bytes(content)
    elif harm == "no sidecar":
        sidecar.unlink()
    else:
        facts[len(facts) // 2] ^= 1
        sidecar.write_bytes(facts)
    notes: list[str] = []
    training = Training()
    rows, journal = run(copy, every=EVERY, notes=notes, training=training)
    assert notes == [f"{newest}: is ignored, because it is damaged"] == journal.notes
    assert training.restored == 1
    assert rows == left[1]
    assert int(older.stem) < int(newest.stem)


def test_without_a_snapshot_training_starts_again(copy: Path, left: tuple[Path, list[Any]]) -> None:
    shutil.rmtree(copy / FOLDER)
    notes: list[str] = []
    training = Training()
    rows, _ = run(copy, every=EVERY, notes=notes, training=training)
    assert rows == left[1]
    assert training.restored == 0
    assert "no usable snapshot; training starts again from the first round" in notes[0]


def test_tensors_of_a_snapshot_begin_where_new_tensors_begin(tmp_path: Path) -> None:
    """PyTorch sums in another order if tensors begin elsewhere, so that a resumed run would have other bytes."""
    sizes = (1, 3, 11)  # in the file, the second and the third tensor begin at odd multiples of four bytes
    written = {str(size): torch.arange(float(size)) for size in sizes}
    state = type("Sizes", (), {"state": lambda self: (written, {})})()
    snapshots = Snapshots(tmp_path / FOLDER)
    snapshots.take(state, 1, "digest")
    found, _ = snapshots.newest({1: "digest"})
    assert found is not None
    read = found.tensors()
    assert all(torch.equal(read[name], tensor) for name, tensor in written.items())
    assert {tensor.data_ptr() % PYTORCH_ALIGNS_TO for tensor in read.values()} == {0}


def test_a_snapshot_of_another_journal_is_left_out(copy: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    run(other, every=EVERY, arriving=lambda id_, round_: True)
    shutil.rmtree(copy / FOLDER)
    shutil.copytree(other / FOLDER, copy / FOLDER)
    notes: list[str] = []
    run(copy, every=EVERY, notes=notes)
    assert "the journal lacks the entries that it belongs to" in notes[0]


def test_the_two_latest_snapshots_are_kept_until_the_run_is_complete(tmp_path: Path) -> None:
    _, journal = run(tmp_path, every=Every(rounds=1))
    assert len(list((tmp_path / FOLDER).glob("*.safetensors"))) == 2
    with journal:
        pass
    assert not (tmp_path / FOLDER).exists()


def test_another_call_is_refused_with_its_place(copy: Path) -> None:
    with pytest.raises(
        EdgeflError,
        match=r"cell 0, session 1, probe round 1: this run calls `aggregate` with ids 0 4, .*journal.jsonl "
        r"\(entry \d+\) records it with ids 0 2 4; the two runs differ",
    ):
        run(copy, every=EVERY, arriving=lambda id_, round_: (id_ + round_) % 3 > 0)


def test_another_order_is_refused(copy: Path) -> None:
    training = Training()
    journal = Journal(copy, CIRCUMSTANCES, training)
    with refused_at("", "cell 1", "cell 0"):
        next(journaled(training, journal)[1].session(SessionStart(1, (1, 3, 5), 3)))


FILED = "scenario.yaml"


@pytest.mark.parametrize(
    ("name", "value", "told"),
    [
        ("edgefl", "0.2.0", "edgefl is 0.2.0, was 0.1.0"),
        (FILED, "learning: {local: {lr: 0.06}}", f"{FILED}: learning.local.lr is 0.06, was 0.05; undo"),
        (FILED, "learning: {local: {lr: 0.05}}  #", f"{FILED}: its text has changed"),
        (FILED, "a: 1\nb: 2\nc: 3", "learning.local.lr is None, was 0.05, a is 1, was None.* 1 more keys"),
        ("the code of mine", "1", r"start again: edgefl run .*scenario.yaml --allow-code$"),
    ],
)
def test_other_circumstances_are_refused(copy: Path, name: str, value: str, told: str) -> None:
    with pytest.raises(EdgeflError, match=told):
        Journal(copy, {**CIRCUMSTANCES, name: value}, Training())


@pytest.mark.parametrize("calls", [1, 2, 7, 8, 15, 16, 20, 31])
def test_an_interrupted_run_loses_nothing(left: tuple[Path, list[Any]], tmp_path: Path, calls: int) -> None:
    """After Ctrl-C in the engine, training continues from the snapshot taken by the interruption."""

    def interrupt(id_: int, round_: int) -> bool:
        nonlocal calls
        calls -= 1
        if not calls:
            raise Interrupted
        return (id_ + round_) % 4 > 0

    training = Training()
    with pytest.raises(Interrupted), Journal(tmp_path, CIRCUMSTANCES, training) as journal:
        engine(journaled(training, journal), arriving=interrupt)
    entries = len((tmp_path / FILE).read_bytes().splitlines()) - 1
    assert [int(path.stem) for path in (tmp_path / FOLDER).glob("*.safetensors")] == [entries]
    resumed = Training()
    rows, journal = run(tmp_path, every=EVERY, training=resumed)
    assert not journal.notes
    assert rows == left[1]
    assert (tmp_path / FILE).read_bytes() == (left[0] / FILE).read_bytes()


def test_no_snapshot_of_a_state_between_two_entries(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    training = Training()

    def interrupt(self: FakeStage, ids: Sequence[int]) -> None:
        raise Interrupted

    monkeypatch.setattr(FakeStage, "aggregate", interrupt)
    with pytest.raises(Interrupted), Journal(tmp_path, CIRCUMSTANCES, training) as journal:
        engine(journaled(training, journal))
    assert not (tmp_path / FOLDER).exists()


def test_a_snapshot_that_cannot_be_written_does_not_end_the_run(
    tmp_path: Path, left: tuple[Path, list[Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*arguments: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("safetensors.torch.save_file", full)
    rows, journal = run(tmp_path, every=EVERY)
    assert rows == left[1]
    assert "no snapshot" in journal.notes[0]
    assert "No space left on device" in journal.notes[0]
    assert not list((tmp_path / FOLDER).iterdir())


def test_every_damage_of_a_line_is_recognised() -> None:
    line = sealed({"n": 3, "x": [0.1 + 0.2, math.inf, None], "name": "é\n"}).encode()
    assert unsealed(line) == {"n": 3, "x": [0.30000000000000004, math.inf, None], "name": "é\n"}
    for position in range(len(line)):
        assert unsealed(line[:position]) is None
        for bit in range(8):
            flipped = bytearray(line)
            flipped[position] ^= 1 << bit
            assert unsealed(bytes(flipped)) is None


numbers = st.one_of(st.integers(-5, 5), st.floats(allow_nan=False), st.none())


@given(st.lists(numbers) | st.lists(st.integers(0, 40), unique=True).map(sorted) | st.lists(st.just(0.25)))
def test_values_come_back_to_the_last_digit(values: list[Any]) -> None:
    back = decoded(json.loads(json.dumps(encoded(values))))
    assert list(map(repr, back)) == list(map(repr, values))


def test_contract_values_come_back() -> None:
    opening = Opening("similarity", {1: 1 / 3, 2: 2 / 3}, (0, 3), 0.1, math.inf)
    local = LocalRound((0, 1, 2), (50, 50, 50), (1, 2, 3), (9, 9, 9), (9, 9, 9), {"loss": (0.1, None, -0.0)})
    for value in (
        SessionStart(1, tuple(range(100)), 30, True),
        StageFacts("probe", 2, 0.3, False),
        StageFacts("train", None, opening=opening),
        Evaluation(0.1, 2.3),
        local,
        None,
    ):
        assert repr(decoded(json.loads(json.dumps(encoded(value))))) == repr(value)


def test_devices_that_are_alike_take_little_room() -> None:
    ids = tuple(range(10_000))
    local = LocalRound(ids, (50,) * 10_000, (800,) * 10_000, (64,) * 10_000, (64,) * 10_000)
    assert len(json.dumps(encoded(local))) < 300


def test_numpy_numbers_are_plain() -> None:
    local = LocalRound((np.int64(3),), (np.int32(2),), (1,), (1,), (1,), {"loss": (np.float32(0.5),)})
    back = decoded(json.loads(json.dumps(encoded(local))))
    assert back == LocalRound((3,), (2,), (1,), (1,), (1,), {"loss": (0.5,)})
    assert type(back.ids[0]) is int


def test_ids_in_words() -> None:
    assert words((0, 1, 2, 3, 7, 9)) == "0-3 7 9"
    assert words(3) == "3"
    assert words(tuple(range(0, 400, 2))).endswith("...")
