"""The journal of a run, which records every call to its learners and every answer, in order.

The engine is a function of scenario, seed and these answers, so an unfinished run is resumed by replay. It starts
again at time 0, and its learners answer from the journal; at the journal's end, they continue training from the state
of a snapshot. The run's tables are then byte for byte those of an uninterrupted run.
"""

import hashlib
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

from edgefl.errors import EdgeflError
from edgefl.run_directory.circumstances import CODE_OF, SCENARIO, differences
from edgefl.run_directory.files import reading, writing
from edgefl.run_directory.interruption import held, insist
from edgefl.run_directory.plain import decoded, encoded, words
from edgefl.run_directory.questions import Place
from edgefl.run_directory.seal import sealed, unsealed
from edgefl.run_directory.snapshot import DEFAULT, Every, Snapshot, Snapshotable, Snapshots
from edgefl.version import __version__

FORMAT = 3
FILE = "journal.jsonl"
FOLDER = "snapshots"
LENT = "lent"  # snapshots from which other runs of a study continue; the study removes them
Lends = Callable[[int], bool]  # session -> whether a snapshot is taken before it opens
NEVER: Lends = lambda session: False  # noqa: E731


@dataclass
class _Recovered:
    """The readable part of a journal, which may be truncated.

    Args:
        entries: entries before the snapshot; empty if there is no snapshot, so that training starts again.
        size: number of bytes of the entries.
        digest: hash of the entries' bytes.
    """

    entries: list[dict[str, Any]] = field(default_factory=list)
    size: int = 0
    digest: Any = field(default_factory=hashlib.sha256)
    snapshot: Snapshot | None = None
    notes: list[str] = field(default_factory=list)


class Journal:
    """The journal of a run in progress, to be used as a context manager.

    If the directory already contains the journal of an unfinished run, its recorded answers are used first.

    Args:
        directory: the run directory.
        circumstances: result of `circumstances`; an unfinished run can only be resumed under the same circumstances.
        training: the training whose state snapshots store.
        lends: session -> whether to take a snapshot for other runs before the session opens.
        ready: returns whether this run has trained anything itself; until then all answers come from another run.
        taken: returns the line of another run's journal that gave the last answer, or None.
        on_note: called with notes on damaged files and on how the run continues despite them.

    Raises:
        EdgeflError: the run was started under other circumstances.
    """

    def __init__(
        self,
        directory: Path,
        circumstances: Mapping[str, str],
        training: Snapshotable,
        *,
        every: Every = DEFAULT,
        lends: Lends = NEVER,
        ready: Callable[[], bool] = lambda: True,
        taken: Callable[[], bytes | None] = lambda: None,
        on_note: Callable[[str], None] = lambda note: None,
    ) -> None:
        self._training = training
        self._ready = ready
        self._taken = taken
        self._lends = lends
        self._lent = Snapshots(directory / LENT, keeps=None)
        self._on_note = on_note
        self.notes: list[str] = []
        self._snapshots = Snapshots(directory / FOLDER, every)
        path = self.path = directory / FILE
        recovered = _recover(path, circumstances, self._snapshots)
        self._recorded = deque(recovered.entries)  # entries whose answers have not been used yet
        for note in recovered.notes:
            self._note(note)
        self._digest = recovered.digest
        self._restorable = recovered.snapshot
        self._in_snapshot = self._count = len(recovered.entries)
        self._aggregations = sum(entry["call"] == "aggregate" for entry in recovered.entries)
        self._last_present: tuple[Any, Any] = (None, None)  # the present devices, and their JSON
        # whether the learners are in the state after the last entry
        self._settled = not recovered.entries
        with writing(path):
            self._file = path.open("ab")
            self._file.truncate(recovered.size)
        if not recovered.size:
            self._put(sealed({"journal": FORMAT, **circumstances}).encode())
        self._snapshots.remove(after=self._count)

    def replays(self) -> bool:
        """Return whether the next call is recorded; if not, restore training from a snapshot.

        Raises:
            Interrupted: the run was interrupted, and own code caught the exception.
        """
        insist()
        if self._recorded:
            return True
        if self._restorable is not None:
            snapshot, self._restorable = self._restorable, None
            self._training.restore(snapshot.tensors(), snapshot.facts)
            self._settled = True
        return False

    def answer(self, at: Place, call: str, asked: Mapping[str, Any]) -> Any:
        """Return the recorded answer to the next call.

        Raises:
            EdgeflError: the recorded call is different; the message states how the two calls differ.
        """
        entry, remedy = self._recorded[0], "the two runs differ: start this run from the beginning"
        if (entry["cell"], entry["call"]) != (at.cell, call):
            raise EdgeflError(
                f"{at}: this run calls `{call}` of cell {at.cell}, but {self.path} (entry {entry['n']}) has "
                f"`{entry['call']}` of cell {entry['cell']}; {remedy}"
            )
        for name, value in asked.items():
            recorded = entry["asked"].get(name)
            if encoded(value) != recorded:
                raise EdgeflError(
                    f"{at}: this run calls `{call}` with {name} {words(value)}, but {self.path} (entry "
                    f"{entry['n']}) records it with {name} {words(decoded(recorded))}; {remedy}"
                )
        return decoded(self._recorded.popleft()["answered"])

    def record(self, at: Place, call: str, asked: Mapping[str, Any], answered: Any = None) -> Any:
        """Append a call and its answer to the journal; return the answer as a resumed run will read it.

        Raises:
            Interrupted: the learner was interrupted in this call, and caught the exception.
        """
        insist()
        line = self._taken()
        if line is None:
            entry: dict[str, Any] = {"n": self._count, "cell": at.cell, "call": call}
            entry["asked"] = {name: self._encoded(name, value) for name, value in asked.items()}
            entry["answered"] = encoded(answered)
            line, answered = sealed(entry).encode(), decoded(entry["answered"])
        with held():
            self._put(line)
            self._count += 1
            self._aggregations += call == "aggregate"
        return answered

    def _encoded(self, name: str, value: Any) -> Any:
        """Encode a call's argument as JSON; encode an unchanged list of present devices only once."""
        if name != "present":
            return encoded(value)
        if self._last_present[0] is not value:
            self._last_present = value, encoded(value)
        return self._last_present[1]

    @contextmanager
    def changing(self) -> Iterator[None]:
        """Keep a state-changing call and its journal entry together, so that a snapshot has both or neither."""
        with held():
            self._settled = False
            yield
            self._settled = True

    def aggregated(self) -> None:
        """Take a snapshot if one is due after an aggregation."""
        if self._snapshots.due(self._aggregations):
            self._take_snapshot()

    def opens(self, session: int) -> None:
        """Take a snapshot for other runs if one is due before this session."""
        if self._lends(session) and self._settled and self._ready():
            self._attempt(self._lent)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        try:
            if isinstance(error, KeyboardInterrupt) and self._settled and self._count > self._in_snapshot:
                self._take_snapshot()
            if error is None:
                self._snapshots.remove()
        finally:
            self.close()

    def close(self) -> None:
        """Close the journal's file, and keep journal and snapshots for a process that resumes the run."""
        with suppress(OSError):  # on a full disk, closing fails as the last write did
            self._file.close()

    def _take_snapshot(self) -> None:
        if self._ready() and self._attempt(self._snapshots):
            self._in_snapshot = self._count

    def _attempt(self, snapshots: Snapshots) -> bool:
        try:
            snapshots.take(self._training, self._count, self._digest.hexdigest())
        except EdgeflError as error:  # the run continues without this snapshot
            self._note(f"no snapshot: {error}")
            return False
        return True

    def _put(self, line: bytes) -> None:
        with writing(self.path):
            self._file.write(line)
            self._file.flush()
        self._digest.update(line)

    def _note(self, note: str) -> None:
        self.notes.append(note)
        self._on_note(note)


def header(path: Path) -> dict[str, Any] | None:
    """Return the circumstances under which a journal was started, or None if its first line is damaged or missing."""
    if not (path.exists() or path.is_symlink()):
        return None
    with reading(path), path.open("rb") as file:
        begun = unsealed(file.readline())
    if begun is not None and begun.get("journal") != FORMAT:
        raise EdgeflError(
            f"{path}: has format {begun.get('journal')}, but this edgefl ({__version__}) reads {FORMAT}; use the"
            " edgefl that wrote it"
        )
    return begun


def refuse_changed(directory: Path, begun: Mapping[str, Any], circumstances: Mapping[str, str]) -> None:
    """Raise an EdgeflError unless a run that began under some circumstances now has the same circumstances."""
    if unlike := differences(begun, circumstances):
        own_code = any(name.startswith(CODE_OF) for name in circumstances)
        again = f"edgefl run {directory / SCENARIO}{' --allow-code' if own_code else ''}"
        raise EdgeflError(
            f"{directory}: cannot be resumed, because its results would mix two different runs: "
            f"{'; '.join(unlike)}; undo these changes, or start again: {again}"
        )


def lines(path: Path) -> Iterator[tuple[dict[str, Any], bytes]]:
    """Yield a journal's entries with their lines, up to the first damaged line."""
    with path.open("rb") as file:
        file.readline()
        for number, line in enumerate(file):
            entry = unsealed(line)
            if entry is None or entry.get("n") != number:
                return
            yield entry, line


def _recover(path: Path, circumstances: Mapping[str, str], snapshots: Snapshots) -> _Recovered:
    """Read the usable part of a journal and its snapshots for a resumed run.

    Raises:
        EdgeflError: the run was started under other circumstances.
    """
    begun = header(path)
    if begun is None:
        return _Recovered(
            notes=[f"{path}: its first line is damaged; the run starts again"] if path.exists() else []
        )
    refuse_changed(path.parent, begun, circumstances)
    with path.open("rb") as file:
        first = file.readline()
    entries, sizes, digest = [], [len(first)], hashlib.sha256(first)
    digests = {0: digest.hexdigest()}
    for entry, line in lines(path):
        entries.append(entry)
        sizes.append(sizes[-1] + len(line))
        digest.update(line)
        digests[len(entries)] = digest.hexdigest()
    notes = []
    if sizes[-1] < path.stat().st_size:
        notes.append(f"{path}: line {len(entries) + 2} is damaged; it and all later lines are ignored")
    snapshot, damaged = snapshots.newest(digests)
    notes += damaged
    count = snapshot.entries if snapshot else 0
    if entries and not count:
        notes.append(f"{path.parent}: has no usable snapshot; training starts again from the first round")
    with path.open("rb") as file:
        digest = hashlib.sha256(file.read(sizes[count]))
    return _Recovered(entries[:count], sizes[count], digest, snapshot, notes)
