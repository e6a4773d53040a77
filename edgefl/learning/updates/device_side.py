"""Run the devices' part of a training round, and store the vectors that devices keep."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np
import torch
from torch import Tensor

from edgefl.learning.algorithms import (
    RECEIVED_GRADIENT,
    Algorithm,
    Notes,
    Received,
    Sent,
    ServerState,
    Trained,
)
from edgefl.learning.algorithms._rare import GRADIENT_PASSES
from edgefl.learning.chance import Chance, RoundChance
from edgefl.learning.data.batches import Batches
from edgefl.learning.local.handed import NOTES, OWN, Handed
from edgefl.learning.local.local_task import LocalTask, Stop
from edgefl.learning.local.local_training import LocalTraining
from edgefl.learning.models import OutputTerm
from edgefl.learning.tensors import in_double
from edgefl.learning.updates import answers
from edgefl.learning.updates.device_states import DeviceStates
from edgefl.learning.updates.release import Release
from edgefl.learning.updates.rows import blocks, like_rows, notes_at
from edgefl.learning.updates.transfers import Transfers
from edgefl.learning.updates.updates import Amounts, LocalResult, TrainedRound

LOCAL_MODEL = "last local model"
PERSONAL_MODEL = "personal model"
STATISTICS = "statistics"
Foretell = Callable[[Amounts], None]
OPTIMISER = "optimiser"  # name of the optimiser's kept state and number of steps


class DeviceSide:
    """The device side of an algorithm: local training, uploads, and the vectors that devices keep.

    Args:
        devices: storage of the vectors that devices keep.
        transfers: object that encodes what devices receive and send.
        release: object that changes updates before devices send them.
    """

    def __init__(
        self,
        training: LocalTraining,
        algorithm: Algorithm,
        devices: DeviceStates,
        transfers: Transfers,
        release: Release,
    ) -> None:
        self._training = training
        self._algorithm = algorithm
        self._devices = devices
        self._transfers = transfers
        self._release = release

    @property
    def keeps_statistics(self) -> bool:
        """Whether each device keeps its own statistics, because no models are exchanged."""
        return self._algorithm.vectors_up == 0 and self._training.layout.statistics.size > 0

    def with_statistics(self, models: Tensor, ids: Sequence[int], of: Tensor) -> Tensor:
        """Append statistics to models [M] or [k, M]: statistics of the model `of`, or the devices' own statistics."""
        _, statistics = self._training.layout.split(of)
        if self.keeps_statistics:
            statistics = self._devices.rows(STATISTICS, ids, statistics)
            models = models.expand(len(ids), -1)
        return torch.cat([models, statistics.expand(*models.shape[:-1], -1)], dim=-1)

    @property
    def _changes_upload(self) -> bool:
        """Whether devices send something other than their local models."""
        changes = self._transfers.changes_upload or self._release.changes_upload
        return changes or self._algorithm.changes_upload()

    def task(
        self,
        ids: Sequence[int],
        batches: Batches,
        lr: float,
        start: Tensor,
        terms: Sequence[OutputTerm],
        stop: Stop | None,
        state: ServerState,
    ) -> LocalTask:
        """Return the input of these devices' local training, starting from a model [M + Q] or models [k, M + Q]."""
        algorithm = self._algorithm
        like, _ = self._training.layout.split(start.reshape(-1, start.shape[-1])[0])
        at_start = self._training.gradients(start, batches.samples) if algorithm.whole_gradients else None

        def own(positions: Sequence[int]) -> Mapping[str, Tensor]:
            vectors = self.own([ids[k] for k in positions], like)
            if at_start is not None:
                vectors[RECEIVED_GRADIENT] = at_start[list(positions)]
            return vectors

        def kept(name: str) -> Callable[[Sequence[int]], Tensor]:
            def rows(positions: Sequence[int]) -> Tensor:
                missing = start if start.dim() == 1 else start[list(positions)]
                return self._devices.rows(name, [ids[k] for k in positions], missing)

            return rows

        return LocalTask(
            start,
            batches,
            lr,
            algorithm,
            state,
            own,
            previous=kept(LOCAL_MODEL) if algorithm.keeps_local_model else None,
            personal=kept(PERSONAL_MODEL) if algorithm.trains_personal else None,
            optimiser=self._optimiser(ids, like) if self._training.state_size else None,
            terms=terms,
            stop=stop,
        )

    def _optimiser(self, ids: Sequence[int], like: Tensor) -> Callable[[Sequence[int]], Tensor]:
        missing = like.new_zeros(self._training.state_size)
        return lambda positions: self._devices.rows(OPTIMISER, [ids[k] for k in positions], missing)

    def upload(
        self, trained: TrainedRound, state: ServerState, chance: RoundChance
    ) -> tuple[Sent | None, dict[str, Tensor]]:
        """Return all devices' uploads (zeros without data), and the vectors to keep for uploads that arrive.

        The uploads are None if devices send their local models, which saves memory.
        """
        algorithm, positions, optimiser = self._algorithm, trained.trained, trained.models.optimiser
        remembered = {} if optimiser is None else {OPTIMISER: optimiser}
        if not positions or not self._changes_upload:
            return None, remembered
        parameters, _ = self._training.layout.split(trained.rows)
        rows = torch.zeros_like(parameters)
        parts, memories = [], []
        for begin, end in blocks(len(positions), parameters):
            some = positions[begin:end]
            ids = [trained.ids[k] for k in some]
            rng = chance.of_devices("upload", ids)
            view = self.trained(trained, some, parameters[some], rng)
            if algorithm.whole_gradients:
                view = replace(view, gradients=self._gradients(trained, some))
            part = algorithm.upload(view, state, self.own(ids, parameters[0]))
            part = answers.sent(algorithm.upload, part, view.local)
            part = replace(part, rows=self._release.limited(part.rows, view.start, ids, chance))
            part, left = self._transfers.up(part, view.start, ids, chance)
            memories.append(left)
            rows[some] = part.rows
            parts.append(replace(part, rows=part.rows[:0]))

        def all_of(pieces: list[Tensor]) -> Tensor:
            result = pieces[0].new_zeros(len(trained.ids), *pieces[0].shape[1:])
            result[positions] = torch.cat(pieces)
            return result

        notes = {name: all_of([part.notes[name] for part in parts]) for name in parts[0].notes}
        bits = [part.bits for part in parts if part.bits is not None]
        memory = remembered | {name: all_of([one[name] for one in memories]) for name in memories[0]}
        return Sent(rows, notes, all_of(bits) if bits else None), memory

    def _gradients(self, trained: TrainedRound, positions: Sequence[int]) -> Tensor:
        """Return the gradients [k, M] of local models on all samples, and count the passes as tested samples."""
        assert trained.batches is not None
        samples = [trained.batches.samples[k] for k in positions]
        trained.models.tested[positions] += GRADIENT_PASSES * np.array([len(own) for own in samples])
        return self._training.gradients(trained.rows[positions], samples)

    def foretell(
        self, tell: Foretell | None, batches: Batches, received: Received, tested: np.ndarray
    ) -> None:
        """Report the amounts of work before a round trains, unless early stopping or the uploads may change them.

        Args:
            tested: number of samples for which only the forward pass is run.
        """
        count = len(batches.steps)
        if tell is not None and not len(batches.validation) and not self._changes_upload:
            bits = self._transfers.down_bits(received, count), self._transfers.up_bits(None, count)
            tell(Amounts(batches.steps, batches.processed(batches.steps), tested, *bits))

    def result(
        self, trained: TrainedRound, received: Received, sent: Sent | None, tested: np.ndarray
    ) -> LocalResult:
        """Return the work of each device in a trained round, and the round's columns for the tables."""
        models, count = trained.models, len(trained.ids)
        scalars = {
            name: in_double(note).cpu().numpy() for notes in trained.notes for name, note in notes.items()
        }
        account, after = self._release.columns(trained.ids, models.steps > 0)
        assert trained.batches is not None
        return LocalResult(
            round=trained,
            steps=models.steps,
            samples=trained.batches.processed(models.steps),
            tested=models.tested + tested,
            down_bits=self._transfers.down_bits(received, count),
            up_bits=self._transfers.up_bits(sent, count),
            scalars={name: values for name, values in scalars.items() if values.ndim == 1} | dict(account),
            after=after,
        )

    def own(self, ids: Sequence[int], like: Tensor) -> Handed:
        """Return the vectors [k, M] by name that the algorithm keeps on these devices; zeros where none is kept."""
        zero = torch.zeros_like(like)
        vectors = {name: self._devices.rows(name, ids, zero) for name in self._algorithm.device_vectors}
        return Handed(self._algorithm, OWN, vectors)

    def trained_personal(self, round_: TrainedRound) -> Tensor:
        """Return each device's own model [K, M + Q] after a round's training, before aggregation.

        The models are personal models if the algorithm has them, otherwise local models.
        """
        algorithm, layout, models = self._algorithm, self._training.layout, round_.models
        if not algorithm.has_personal():
            return models.rows
        local, _ = layout.split(models.rows)
        rows = models.rows if models.personal is None else models.personal
        personal, statistics = layout.split(rows)
        own = algorithm.personal(local, personal, self.own(round_.ids, local[0]))
        own = answers.models(algorithm.personal, own, len(local), local, for_all=False)
        return torch.cat([own, statistics], dim=1)

    def holders(self, ids: Sequence[int]) -> list[int]:
        """Return the given devices that keep a model of their own, trained on their current data."""
        algorithm = self._algorithm
        if not algorithm.keeps_own_model():
            return []
        names = (PERSONAL_MODEL,) if algorithm.trains_personal else algorithm.device_vectors
        keeps = [self._devices.has(name, ids) for name in names] or [np.ones(len(ids), dtype=bool)]
        return [ids[k] for k in np.flatnonzero(np.any(keeps, axis=0)).tolist()]

    def noted(self, round_: TrainedRound, positions: Sequence[int]) -> Notes:
        """Return the notes in `Received` and `Sent` about the devices at these indices of a round."""
        noted = notes_at(positions, round_.notes[0]) | notes_at(positions, round_.notes[1])
        return Handed(self._algorithm, NOTES, noted)

    def trained(self, round_: TrainedRound, positions: Sequence[int], local: Tensor, rng: Chance) -> Trained:
        """Return the results of local training, as algorithms see them, of the devices at these indices."""
        steps = round_.models.steps[positions]
        start, _ = self._training.layout.split(round_.received_by(positions))
        return Trained(
            local=local,
            start=start,
            iterations=like_rows(steps, local),
            travel=like_rows(self._training.travel(steps), local),
            lr=round_.lr,
            notes=Handed(self._algorithm, NOTES, notes_at(positions, round_.notes[0])),
            rng=rng,
        )

    def keep(
        self,
        round_: TrainedRound,
        positions: Sequence[int],
        rows: Tensor,
        trained: Trained,
        sent: Tensor,
        state: ServerState,
    ) -> None:
        """Store the vectors that devices at these indices keep from a round, since their updates have arrived."""
        algorithm, personal = self._algorithm, round_.models.personal
        ids = [round_.ids[k] for k in positions]
        if algorithm.keeps_local_model:
            self._devices.keep(LOCAL_MODEL, ids, rows)
        if self.keeps_statistics:
            self._devices.keep(STATISTICS, ids, self._training.layout.split(rows)[1])
        self._release.keep(ids)
        memory = dict(notes_at(positions, round_.memory))
        if (optimiser := memory.pop(OPTIMISER, None)) is not None:
            self._devices.keep(OPTIMISER, ids, optimiser)
        self._transfers.keep(ids, memory, trained.start)
        noted = self.noted(round_, positions)
        for name in algorithm.remembers:
            self._devices.keep(name, ids, noted[name].to(rows.dtype).unsqueeze(1))
        for begin, end in blocks(len(ids), trained.local):
            if personal is not None:
                self._devices.keep(PERSONAL_MODEL, ids[begin:end], personal[positions[begin:end]])
            if algorithm.device_vectors:
                own = self.own(ids[begin:end], trained.local[0])
                some = trained.part(begin, end)
                some = replace(some, notes=Handed(algorithm, NOTES, some.notes))
                kept = algorithm.keep(some, sent[begin:end], state, own)
                names = algorithm.device_vectors
                kept = answers.vectors(algorithm.keep, kept, names, some.local)
                for name, vectors in kept.items():
                    own.check(name)
                    self._devices.keep(name, ids[begin:end], vectors)
