"""What devices do in a round of training, and what they keep of it."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np
import torch
from torch import Tensor

from edgefl.learning.algorithms import Algorithm, Notes, Received, Sent, ServerState, Trained
from edgefl.learning.chance import Chance, RoundChance
from edgefl.learning.data.batches import Batches
from edgefl.learning.local.handed import Handed
from edgefl.learning.local.local_task import LocalTask, Stop
from edgefl.learning.local.local_training import LocalTraining
from edgefl.learning.models import OutputTerm
from edgefl.learning.privacy import EPSILON, Privacy
from edgefl.learning.updates.compression import Compression
from edgefl.learning.updates.device_states import DeviceStates
from edgefl.learning.updates.payload import Payload
from edgefl.learning.updates.rows import blocks, like_rows, notes_at, numbers
from edgefl.learning.updates.updates import LocalResult, TrainedRound

LOCAL_MODEL = "last local model"
PERSONAL_MODEL = "personal model"
STATISTICS = "statistics"
UPDATES = "updates charged"  # where there is an account of privacy
OPTIMISER = "optimiser"  # its state, and steps so far


class DeviceSide:
    """The devices' part of an algorithm: their training, what they send, and the vectors that they keep.

    Args:
        devices: where these vectors are.
        payload: bits of a transfer.
        compression: codecs of what they receive and send.
        privacy: what they do to updates before these are coded; None: nothing.
    """

    def __init__(
        self,
        training: LocalTraining,
        algorithm: Algorithm,
        devices: DeviceStates,
        payload: Payload,
        compression: Compression,
        privacy: Privacy | None = None,
    ) -> None:
        self._training = training
        self._algorithm = algorithm
        self._devices = devices
        self._payload = payload
        self._compression = compression
        self._privacy = privacy

    @property
    def keeps_statistics(self) -> bool:
        """Whether each device has statistics of its own, as nothing is exchanged."""
        return self._algorithm.vectors_up == 0 and self._training.layout.statistics.size > 0

    def with_statistics(self, models: Tensor, ids: Sequence[int], of: Tensor) -> Tensor:
        """Return models [M] or [k, M] with the statistics of this model, or of the devices if they keep them."""
        _, statistics = self._training.layout.split(of)
        if self.keeps_statistics:
            statistics = self._devices.rows(STATISTICS, ids, statistics)
            models = models.expand(len(ids), -1)
        return torch.cat([models, statistics.expand(*models.shape[:-1], -1)], dim=-1)

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
        """Return the local training of these devices, which begin with a model [M + Q], or one of each."""
        algorithm = self._algorithm
        like, _ = self._training.layout.split(start.reshape(-1, start.shape[-1])[0])

        def own(positions: Sequence[int]) -> Mapping[str, Tensor]:
            return self.own([ids[k] for k in positions], like)

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
        """Return what all devices send, zeros without data, and what they remember of it if it arrives.

        None: they send their local models, which needs no memory.
        """
        algorithm, positions, codec = self._algorithm, trained.trained, self._compression.uplink
        privacy, optimiser = self._privacy, trained.models.optimiser
        remembered = {} if optimiser is None else {OPTIMISER: optimiser}
        if not positions or (codec is None and privacy is None and not algorithm.changes_upload()):
            return None, remembered
        parameters, _ = self._training.layout.split(trained.rows)
        rows = torch.zeros_like(parameters)
        parts, memories = [], []
        for begin, end in blocks(len(positions), parameters):
            some = positions[begin:end]
            ids = [trained.ids[k] for k in some]
            rng = chance.of_devices("upload", ids)
            view = self.trained(trained, some, parameters[some], rng)
            part = algorithm.upload(view, state, self.own(ids, parameters[0]))
            if privacy is not None:
                limited = privacy.limited(part.rows, view.start, chance.of_devices("privacy", ids))
                part = replace(part, rows=limited)
            if codec is not None:
                part, coded = self._compression.up(part, view.start, ids, chance)
                memories.append(coded.memory)
            rows[some] = part.rows
            parts.append(replace(part, rows=part.rows[:0]))

        def all_of(pieces: list[Tensor]) -> Tensor:
            result = pieces[0].new_zeros(len(trained.ids), *pieces[0].shape[1:])
            result[positions] = torch.cat(pieces)
            return result

        notes = {name: all_of([part.notes[name] for part in parts]) for name in parts[0].notes}
        bits = [part.bits for part in parts if part.bits is not None]
        names = memories[0] if memories else {}
        memory = remembered | {name: all_of([one[name] for one in memories]) for name in names}
        return Sent(rows, notes, all_of(bits) if bits else None), memory

    def result(
        self, trained: TrainedRound, received: Received, sent: Sent | None, tested: np.ndarray
    ) -> LocalResult:
        """Return what each device has done, for the server's books."""
        algorithm, models, count = self._algorithm, trained.models, len(trained.ids)
        scalars = {
            name: note.double().cpu().numpy() for notes in trained.notes for name, note in notes.items()
        }
        if self._privacy is not None and not self._privacy.on_devices:
            one_more = self._updates(trained.ids) + (models.steps > 0)
            scalars[EPSILON] = self._privacy.epsilon(one_more)
        assert trained.batches is not None
        return LocalResult(
            round=trained,
            samples=trained.batches.processed(models.steps),
            tested=models.tested + tested,
            down_bits=self._bits(numbers(received.vectors, algorithm.vectors_down, count), received.bits),
            up_bits=self._bits(np.full(count, algorithm.vectors_up), sent.bits if sent else None),
            scalars={name: values for name, values in scalars.items() if values.ndim == 1},
        )

    def _updates(self, ids: Sequence[int]) -> np.ndarray:
        """Return [k] how many updates of each device, of the data that it holds, have been charged."""
        counts: np.ndarray = self._devices.rows(UPDATES, ids, torch.zeros(1))[:, 0].cpu().numpy()
        return counts

    def uploaded(self, ids: Sequence[int], samples: Mapping[int, int]) -> np.ndarray:
        """Charge an upload of each of these devices, in this order; return [k] its epsilon then.

        Args:
            ids: a device may be named more than once.
            samples: that each holds; without any, what it sends tells nothing.
        """
        assert self._privacy is not None
        counts, charged = dict(zip(ids, self._updates(ids).tolist(), strict=True)), []
        for id_ in ids:
            counts[id_] += samples[id_] > 0
            charged.append(counts[id_])
        self._devices.keep(UPDATES, list(counts), torch.tensor(list(counts.values()))[:, None])
        return self._privacy.epsilon(np.array(charged))

    def expected_bits(self, like: Tensor, state: ServerState, chance: RoundChance) -> tuple[int, int]:
        """Return the bits that a device would receive and send in its first round; a codec's are those of noise.

        Args:
            like: [M] a model.
            state: the server's.
        """
        algorithm, compression = self._algorithm, self._compression
        stated = None if compression.uplink is None else compression.expected_up(like, chance)
        down = self._bits(np.array([algorithm.expected_down(state)]), None)
        return int(down[0]), int(self._bits(np.array([algorithm.vectors_up]), stated)[0])

    def _bits(self, vectors: np.ndarray, stated: Tensor | None) -> np.ndarray:
        layout = self._training.layout
        if stated is None:
            sizes = layout.parameters.size, layout.statistics.size
            return np.array([self._payload.bits(*sizes, int(many)) for many in vectors], dtype=np.int64)
        statistics_bits = self._payload.bits_per_parameter * layout.statistics.size
        return stated.cpu().numpy().astype(np.int64) + statistics_bits

    def own(self, ids: Sequence[int], like: Tensor) -> Handed:
        """Return the vectors [k, M] that the algorithm keeps on these devices; zeros where there are none yet."""
        zero = torch.zeros_like(like)
        vectors = {name: self._devices.rows(name, ids, zero) for name in self._algorithm.device_vectors}
        return Handed.own(self._algorithm, vectors)

    def noted(self, round_: TrainedRound, positions: Sequence[int]) -> Notes:
        """Return the notes of these devices, those of `Received` and those of `Sent`."""
        noted = notes_at(positions, round_.notes[0]) | notes_at(positions, round_.notes[1])
        return Handed.notes(self._algorithm, noted)

    def trained(self, round_: TrainedRound, positions: Sequence[int], local: Tensor, rng: Chance) -> Trained:
        """Return the algorithm's view of these devices' training."""
        steps = round_.models.steps[positions]
        start, _ = self._training.layout.split(round_.received_by(positions))
        return Trained(
            local=local,
            start=start,
            iterations=like_rows(steps, local),
            travel=like_rows(self._training.travel(steps), local),
            lr=round_.lr,
            notes=Handed.notes(self._algorithm, notes_at(positions, round_.notes[0])),
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
        """Let these devices, whose update arrived, keep their vectors of this round."""
        algorithm, personal = self._algorithm, round_.models.personal
        ids = [round_.ids[k] for k in positions]
        if algorithm.keeps_local_model:
            self._devices.keep(LOCAL_MODEL, ids, rows)
        if self.keeps_statistics:
            self._devices.keep(STATISTICS, ids, self._training.layout.split(rows)[1])
        if self._privacy is not None and not self._privacy.on_devices:
            counts = torch.from_numpy(self._updates(ids) + 1.0)
            self._devices.keep(UPDATES, ids, counts.float()[:, None])
        memory = dict(notes_at(positions, round_.memory))
        if (optimiser := memory.pop(OPTIMISER, None)) is not None:
            self._devices.keep(OPTIMISER, ids, optimiser)
        self._compression.keep(ids, memory, trained.start)
        noted = self.noted(round_, positions)
        for name in algorithm.remembered():
            self._devices.keep(name, ids, noted[name].to(rows.dtype).unsqueeze(1))
        for begin, end in blocks(len(ids), trained.local):
            if personal is not None:
                self._devices.keep(PERSONAL_MODEL, ids[begin:end], personal[positions[begin:end]])
            if algorithm.device_vectors:
                own = self.own(ids[begin:end], trained.local[0])
                some = trained.part(begin, end)
                some = replace(some, notes=Handed.notes(algorithm, some.notes))
                kept = algorithm.keep(some, sent[begin:end], state, own)
                for name, vectors in kept.items():
                    own.check(name)
                    self._devices.keep(name, ids[begin:end], vectors)
