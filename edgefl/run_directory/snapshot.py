"""Store all tensors of a run's training in snapshots, so that a resumed run need not train again.

`snapshots/NNNNNN.safetensors` is the state after the first NNNNNN entries of the journal; `NNNNNN.json` has the
checksums of the file and of these entries. If a snapshot is incomplete, the previous snapshot is used.
"""

import errno
import hashlib
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from edgefl.errors import EdgeflError
from edgefl.run_directory.files import draft_of, keep, settle, writing
from edgefl.run_directory.seal import sealed, unsealed

if TYPE_CHECKING:
    from torch import Tensor

KEPT = 2
# Maximum share of a run's time; if a snapshot takes long, the next one is delayed beyond the requested interval.
LARGEST_SHARE = 0.05


class Snapshotable(Protocol):
    """The content of a snapshot, which is everything that training has changed, in all cells."""

    def state(self) -> tuple[dict[str, "Tensor"], dict[str, Any]]:
        """Return the training's state: tensors by name, and facts that JSON can hold."""

    def restore(self, tensors: dict[str, "Tensor"], facts: dict[str, Any]) -> None:
        """Restore a training's state as `state` returned it; the tensors are on the CPU."""


@dataclass(frozen=True)
class TrainingParts:
    """Several parts of training saved as one, with names that contain no slash."""

    parts: Mapping[str, Snapshotable]

    def state(self) -> tuple[dict[str, "Tensor"], dict[str, Any]]:
        """Return the parts' tensors as `part/name`, and their facts by part."""
        tensors: dict[str, Tensor] = {}
        facts = {}
        for name, part in self.parts.items():
            own, facts[name] = part.state()
            tensors |= {f"{name}/{key}": tensor for key, tensor in own.items()}
        return tensors, facts

    def restore(self, tensors: dict[str, "Tensor"], facts: dict[str, Any]) -> None:
        """Restore the state of each part of the training."""
        for name, part in self.parts.items():
            own = {
                key.removeprefix(f"{name}/"): tensors[key] for key in tensors if key.startswith(f"{name}/")
            }
            part.restore(own, facts[name])


@dataclass(frozen=True)
class Every:
    """How often to take a snapshot; results do not depend on this interval.

    Args:
        rounds: number of aggregations in all cells between two snapshots, or None if only `minutes` applies.
        minutes: minutes between two snapshots; taking snapshots uses at most LARGEST_SHARE of a run's time.
    """

    rounds: int | None = None
    minutes: float = 10.0


DEFAULT = Every()


@dataclass(frozen=True)
class Snapshot:
    """A complete snapshot.

    Args:
        entries: number of journal entries before the snapshot.
    """

    path: Path
    entries: int
    facts: dict[str, Any]

    def tensors(self) -> dict[str, "Tensor"]:
        """Load the snapshot's tensors to the CPU, each to memory that PyTorch allocates.

        In the file, tensors begin at multiples of four bytes, and PyTorch sums in another order if a tensor does not
        begin at a multiple of 16 bytes. A resumed run would then differ in the last digits.
        """
        from safetensors.torch import load_file

        return {name: tensor.clone() for name, tensor in load_file(self.path).items()}


class Snapshots:
    """The snapshots of one run.

    Args:
        folder: folder of the snapshots, created with the first snapshot.
        keeps: how many of the newest snapshots to keep; None to keep all.
    """

    def __init__(self, folder: Path, every: Every = DEFAULT, keeps: int | None = KEPT) -> None:
        self._keeps = keeps
        self._folder = folder
        self._every = every
        self._last = time.monotonic()
        self._took_s = 0.0

    def due(self, aggregations: int) -> bool:
        """Whether a snapshot is due.

        Args:
            aggregations: number of aggregations since the run's first round.
        """
        if self._every.rounds is not None:
            return aggregations % self._every.rounds == 0
        wait_s = max(60.0 * self._every.minutes, self._took_s / LARGEST_SHARE)
        return time.monotonic() - self._last >= wait_s

    def take(self, training: Snapshotable, entries: int, digest: str) -> None:
        """Write a snapshot of the training's state after a given number of journal entries.

        Raises:
            EdgeflError: the snapshot cannot be written; its files are removed.
        """
        from safetensors import SafetensorError
        from safetensors.torch import save_file

        began = time.monotonic()
        tensors, facts = training.state()
        path = self._folder / f"{entries:06d}.safetensors"
        try:
            with writing(path):
                self._folder.mkdir(exist_ok=True)
                try:
                    save_file(_plain(tensors), draft_of(path))
                except SafetensorError as error:
                    raise OSError(errno.EIO, str(error)) from error
                about = {
                    "snapshot": path.name,
                    "sha256": _sha256(draft_of(path)),
                    "entries": entries,
                    "journal_sha256": digest,
                    "facts": facts,
                }
                settle(path)
                keep(path.with_suffix(".json"), sealed(about))
                for old in self._all()[: -self._keeps] if self._keeps else []:
                    _remove(old)
        except EdgeflError:
            _remove(path)
            raise
        finally:
            self._last = time.monotonic()
            self._took_s = self._last - began

    def newest(self, digests: Mapping[int, str]) -> tuple[Snapshot | None, list[str]]:
        """Return the newest complete snapshot of a journal, and notes on later snapshots that are unusable.

        Args:
            digests: number n of entries -> checksum of the journal's first n entries.
        """
        notes = []
        for path in reversed(self._all()):
            about = _about(path)
            if about is None:
                notes.append(f"{path}: is ignored, because it is damaged")
            elif digests.get(about["entries"]) != about["journal_sha256"]:
                notes.append(f"{path}: is ignored, because the journal lacks the entries that it belongs to")
            else:
                return Snapshot(path, about["entries"], about["facts"]), notes
        return None, notes

    def whole(self, digests: Mapping[int, str]) -> list[Snapshot]:
        """Return all complete snapshots of a journal, oldest first."""
        described = [(path, _about(path)) for path in self._all()]
        return [
            Snapshot(path, about["entries"], about["facts"])
            for path, about in described
            if about and digests.get(about["entries"]) == about["journal_sha256"]
        ]

    def remove(self, *, after: int = -1) -> None:
        """Delete the snapshots taken after a given number of journal entries, by default all snapshots."""
        for path in self._all():
            if not path.stem.isdigit() or int(path.stem) > after:
                _remove(path)
        with suppress(OSError):  # the folder is missing, or not empty
            for draft in [
                *self._folder.glob("*.part"),
                *self._folder.glob(".tmp*"),
            ]:  # .tmp*: safetensors' own
                draft.unlink()
            self._folder.rmdir()

    def _all(self) -> list[Path]:
        return sorted(self._folder.glob("*.safetensors"))


def _about(path: Path) -> dict[str, Any] | None:
    """Read a snapshot's JSON file; return None if that file or the snapshot is incomplete."""
    try:
        about = unsealed(path.with_suffix(".json").read_bytes())
        return about if about and about.get("sha256") == _sha256(path) else None
    except OSError:
        return None


def _remove(path: Path) -> None:
    for file in (path.with_suffix(".json"), path, draft_of(path), draft_of(path.with_suffix(".json"))):
        with suppress(OSError):
            file.unlink(missing_ok=True)


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _plain(tensors: Mapping[str, "Tensor"]) -> dict[str, "Tensor"]:
    """Return the tensors as contiguous tensors on the CPU, each with its own memory."""
    plain: dict[str, Tensor] = {}
    taken = set()
    for name, tensor in tensors.items():
        own = tensor.detach().to("cpu").contiguous()
        memory = own.untyped_storage()
        shared = memory.data_ptr() in taken or memory.nbytes() != own.numel() * own.element_size()
        plain[name] = own.clone() if shared else own
        taken.add(plain[name].untyped_storage().data_ptr())
    return plain
