"""A model in training, with the algorithm's state at the server and on devices."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import torch
from torch import Tensor

from edgefl.learning.algorithms import Algorithm, ServerState, Updates
from edgefl.learning.chance import NO_CHANCE, Chance, RoundChance
from edgefl.learning.data.batches import Batches
from edgefl.learning.data.dealt_by_group import total
from edgefl.learning.local.chunk_training import in_front
from edgefl.learning.local.handed import STATE, Handed
from edgefl.learning.local.local_task import Stop
from edgefl.learning.local.local_training import LocalTraining
from edgefl.learning.models import OutputTerm
from edgefl.learning.settings import CostSettings
from edgefl.learning.updates import answers
from edgefl.learning.updates.arrivals import BY_SIZE, Arrivals, Weighing
from edgefl.learning.updates.device_side import PERSONAL_MODEL, DeviceSide, Foretell
from edgefl.learning.updates.device_states import DeviceStates
from edgefl.learning.updates.members import RoundReceivers, SessionMembers
from edgefl.learning.updates.release import Release
from edgefl.learning.updates.rows import like_rows
from edgefl.learning.updates.tiers import TierModels
from edgefl.learning.updates.transfers import Transfers
from edgefl.learning.updates.updates import LocalResult, TrainedRound, Update, parts
from edgefl.rng import Streams


class Diverged(Exception):
    """An error about a model that is no longer finite: the model of `device`, or if None, the aggregated model."""

    def __init__(self, device: int | None) -> None:
        super().__init__(device)
        self.device = device


class TrainedModel:
    """A model that is trained from round to round, the global model or the auxiliary model of probe rounds.

    Args:
        devices: storage of the devices' vectors, which a probe does not share with the global model.
        model: the model to start from [M + Q].
        transfers: object that encodes transfers; None: models are sent unencoded, each number in 32 bits.
        streams: random streams of this model; None if nothing is random.
        release: object that changes updates on their way to the server; None: updates are released unchanged.

    Attributes:
        side: the devices' part of the algorithm.
        model: the current model [M + Q]; it is replaced, and never changed in place.
        state: the algorithm's state at the server.
        starting: devices that were present at the session's start, and from which no update has arrived yet.
        waiting: device -> the device's trained update that has not been aggregated, in order of training.
        version: number of aggregations so far, which identifies the model that an update started from.
        tiers: the latest model of each tier; None without tiers, and until a tier has made a model in this session.
    """

    def __init__(
        self,
        training: LocalTraining,
        algorithm: Algorithm,
        devices: DeviceStates,
        model: Tensor,
        transfers: Transfers | None = None,
        streams: Streams | None = None,
        release: Release | None = None,
    ) -> None:
        self._training = training
        self._algorithm = algorithm
        self.devices = devices
        self._streams = streams
        self._transfers = transfers or Transfers(algorithm, training.layout, CostSettings(), devices)
        self._release = release or Release()
        self.side = DeviceSide(training, algorithm, devices, self._transfers, self._release)
        self.model = model
        self.state = {}
        self.starting: frozenset[int] = frozenset()
        self.waiting: dict[int, Update] = {}
        self.version = 0
        self.tiers: TierModels | None = None

    @property
    def state(self) -> ServerState:
        return self._state

    @state.setter
    def state(self, state: ServerState) -> None:
        self._state = Handed(self._algorithm, STATE, state)

    def open(self, model: Tensor, samples: Mapping[int, int]) -> None:
        """Open a session with this model [M + Q] and these devices (id -> number of samples)."""
        parameters, _ = self._training.layout.split(model)
        self.model = model
        init_state = self._algorithm.init_state
        self.state = answers.state(init_state, init_state(parameters, self.state, self._members(samples)))
        self.starting = frozenset(samples)
        self.waiting = {}
        self.tiers = None

    def join(self, newcomers: Sequence[int], samples: Mapping[int, int]) -> None:
        """Admit newcomers to the session; `samples` has the number of samples of all devices, newcomers included.

        A repeated call changes nothing.
        """
        joining = self._members({id_: samples[id_] for id_ in newcomers})
        join = self._algorithm.join
        self.state = answers.state(join, join(self.state, self._members(samples), joining))

    def expected_bits(self) -> tuple[int, int]:
        """Return the bits that a device would receive and send in its first round."""
        parameters, _ = self._training.layout.split(self.model)
        chance = RoundChance(self._streams, (), self.model.device)
        return self._transfers.expected_bits(parameters, self.state, chance)

    def compared(self, terms: Sequence[OutputTerm]) -> int:
        """Return how many reference models each sample passes through, for extra terms of the local loss."""
        previous = self.model.unsqueeze(0) if self._algorithm.keeps_local_model else None
        own = answers.term(self._algorithm.term, self._algorithm.term(self.model, previous))
        return sum(len(term.references) for term in (*terms, *filter(None, (own,))))

    def train(
        self,
        ids: Sequence[int],
        batches: Batches,
        lr: float,
        terms: Sequence[OutputTerm],
        stop: Stop | None = None,
        at: tuple[int | str, ...] = (),
        *,
        drops: bool = False,
        foretell: Foretell | None = None,
    ) -> LocalResult:
        """Run a round's local training; a device's update waits until it is aggregated or the device trains again.

        Args:
            ids, batches: the participants, sorted, and their mini-batches.
            lr, terms: learning rate, which the algorithm may change, and extra terms of the local loss.
            stop, at: early stopping that replaces the algorithm's early stopping; the round's position in the run,
            for random streams.
            drops: whether the server drops updates that are not finite. foretell: as in `Trainer.train`.

        Raises:
            Diverged: a local model is not finite, and the server does not drop it.
        """
        algorithm, (parameters, _) = self._algorithm, self._training.layout.split(self.model)
        chance = RoundChance(self._streams, at, self.model.device)
        receivers = self._receivers(ids, batches.samples, chance.of_devices("receive", ids))
        lr = answers.rate(algorithm.learning_rate, algorithm.learning_rate(lr, self.state))
        wanted = answers.received(
            algorithm.receive,
            algorithm.receive(parameters, self.state, receivers),
            len(ids),
            parameters,
        )
        received, meant = self._transfers.down(wanted, ids, chance)
        start = self.side.with_statistics(received.start, ids, self.model)
        self.waiting = {id_: self.waiting[id_] for id_ in self.waiting if id_ not in set(ids)}
        beside = self.compared(terms) * (1 + algorithm.trains_personal)
        self.side.foretell(foretell, batches, received, receivers.tested + beside * batches.sizes.sum(1))
        task = self.side.task(ids, batches, lr, start, terms, stop, self.state)
        models = self._training.run(task, anew=bool(self.waiting))
        lost = models.not_finite
        if lost and not drops:
            raise Diverged(ids[lost[0]])
        for rows in (models.rows, models.personal):
            if lost and rows is not None:  # replace NaN before codecs and noise see it
                rows[lost] = start if start.dim() == 1 else start[lost]
        trained = TrainedRound(ids, batches, lr, self.version, start, models, notes=(received.notes, {}))
        sent, memory = self.side.upload(trained, self.state, chance)
        if sent is not None:
            trained = replace(trained, sent=sent.rows, notes=(received.notes, sent.notes))
        trained = replace(trained, memory=memory, meant=meant)
        self.waiting |= {id_: Update(trained, k) for k, id_ in enumerate(ids)}
        tested = receivers.tested + beside * batches.processed(models.steps)
        result = self.side.result(trained, received, sent, tested)
        return replace(result, not_finite=tuple(ids[k] for k in lost))

    def uploaded(self, ids: Sequence[int], samples: Mapping[int, int]) -> Mapping[str, tuple[float, ...]]:
        """Charge the privacy account for uploads that have begun; return the account's columns afterwards."""
        return self._release.uploaded(ids, samples)

    def aggregate(
        self,
        arrived: Sequence[int],
        samples: Mapping[int, int],
        weighing: Weighing = BY_SIZE,
        at: tuple[int | str, ...] = (),
    ) -> None:
        """Aggregate the waiting updates of these devices, except devices without data.

        Updates of one round that started from the current model with weight 1 are used unchanged; other updates are
        joined, rebased on the current model and weighted for the server. If coding changed the models that devices
        received, the server uses only each device's change. Devices keep the models that they actually trained.

        Args:
            arrived: ids of devices with an update that arrived.
            samples: id of each device of the session -> the device's number of samples.
            weighing: rules by which updates are weighed.
            at: the aggregation's position in the run, for random streams.

        Raises:
            Diverged: the new model is not finite.
        """
        layout = self._training.layout
        taken = [update for id_ in sorted(arrived) if not (update := self.waiting.pop(id_)).is_empty]
        version, self.version = self.version, self.version + 1
        if not taken:
            return
        weighing = replace(weighing, equally=self._algorithm.weighs_equally())
        arrivals = Arrivals.of(taken, version, samples, weighing)
        round_, positions, ids = arrivals.round, arrivals.positions, arrivals.ids
        # move rows in place unless other updates of the round still wait, since a copy [K, M] may not fit in memory
        shared = any(update.round is round_ for update in self.waiting.values())

        def put(rows: Tensor) -> Tensor:
            return rows[positions] if shared else in_front(rows, positions)

        rows = put(round_.rows)
        parameters, statistics = layout.split(rows)
        sent = parameters if round_.sent is None else put(round_.sent)
        chance = RoundChance(self._streams, at, self.model.device)
        trained = self.side.trained(round_, positions, parameters, chance.of_devices("keep", ids))
        model = layout.split(self.model)
        counted, statistics, start = arrivals.counted(sent, statistics, trained.start, model)
        shares = like_rows(arrivals.shares, rows)
        updates = Updates(
            rows=self._release.averaged(counted, shares, chance),
            start=start,
            shares=shares,
            coverage=float(sum(samples[id_] for id_ in ids) / total(samples)),
            iterations=trained.iterations,
            travel=trained.travel,
            lr=round_.lr,
            notes=self.side.noted(round_, positions),
            rng=chance.of_server("aggregate"),
            local=parameters,
            received=None if round_.meant is None else trained.start,
            staleness=arrivals.staleness,
        )
        self.side.keep(round_, positions, rows, trained, sent, self.state)
        aggregate = self._algorithm.aggregate
        made, self.state = answers.model_and_state(
            aggregate, aggregate(model[0], updates, self.state), model[0]
        )
        if not torch.isfinite(made.sum()):
            raise Diverged(None)
        made = torch.cat([made, model[1] if self.side.keeps_statistics else shares @ statistics])
        if arrivals.tiers:  # `made` is this tier's model; the global model is the mean over tiers
            tiers = self.tiers or TierModels.of(self.model, max(arrivals.tiers) + 1)
            there = sorted({arrivals.tiers[id_] for id_ in samples})
            self.tiers, made = tiers.after(arrivals.tiers[ids[0]], made, there)
        self.model = made
        self.starting -= set(ids)

    def adopt(self, model: Tensor, *, as_next: bool) -> None:
        """Replace the model by another model [M + Q], as the next version or in place of the current version."""
        self.model = model
        self.version += as_next

    def deployed(self, ids: Sequence[int], samples: Sequence[np.ndarray]) -> Tensor:
        """Return the model that the server deploys to these devices, [M + Q] for all, or [k, M + Q] one each.

        Args:
            samples: indices of each device's training samples; empty if the algorithm deploys one model to all
            devices.
        """
        parameters, _ = self._training.layout.split(self.model)
        deployed = self._algorithm.deployed
        models = deployed(parameters, self.state, self._receivers(ids, samples))
        models = answers.models(deployed, models, len(ids), parameters)
        return self.side.with_statistics(models, ids, self.model)

    def waiting_round(self, ids: Sequence[int]) -> TrainedRound:
        """Return the round of training from which the waiting updates of all these devices come."""
        (round_,) = {id(self.waiting[id_].round): self.waiting[id_].round for id_ in ids}.values()
        return round_

    def personal(self, ids: Sequence[int], samples: Sequence[np.ndarray]) -> Tensor | None:
        """Return the models [k, M + Q] that these devices are tested with, or None if all use the global model.

        Args:
            samples: indices of each device's training samples.
        """
        algorithm, layout = self._algorithm, self._training.layout
        if not algorithm.has_personal():
            return self.deployed(ids, samples) if algorithm.keeps_own_model() else None
        kept = self.devices.rows(PERSONAL_MODEL, ids, self.model)
        personal, statistics = layout.split(kept)
        parameters, _ = layout.split(self.model)
        models = algorithm.personal(parameters, personal, self.side.own(ids, parameters))
        models = answers.models(algorithm.personal, models, len(ids), parameters, for_all=False)
        return torch.cat([models, statistics], dim=1)

    def tensors(self) -> dict[str, Tensor]:
        """Return the model, the algorithm's state, and updates that cannot be trained again, for `restore`.

        Updates of the latest round can be trained again as long as the round's start model is still the current
        model; updates of a restored round cannot, since the round has no batches.
        """
        tensors = {"model": self.model, "starting": torch.tensor(sorted(self.starting), dtype=torch.int64)}
        tensors |= {f"state/{name}": vector for name, vector in self.state.items()}
        updates = list(self.waiting.values())
        latest = updates[-1].round if updates else None
        if latest is not None and (latest.version != self.version or latest.batches is None):
            latest = None
        for i, part in enumerate(parts([update for update in updates if update.round is not latest])):
            tensors |= {f"waiting {i}/{name}": tensor for name, tensor in part.tensors().items()}
            tensors["version"] = torch.tensor(self.version)
        if self.tiers is not None:
            tensors |= {"tiers/models": self.tiers.models, "tiers/made": self.tiers.made}
        return tensors

    def restore(self, tensors: Mapping[str, Tensor]) -> None:
        """Restore the model, the algorithm's state and the waiting updates that `tensors` returned."""
        here = {name: tensor.to(self.model.device) for name, tensor in tensors.items()}
        self.model, self.starting = here.pop("model"), frozenset(here.pop("starting").tolist())
        self.version = int(here.pop("version", 0))
        groups: dict[str, dict[str, Tensor]] = {}
        for name, tensor in here.items():
            group, _, inner = name.partition("/")
            groups.setdefault(group, {})[inner] = tensor
        self.state = groups.pop("state", {})
        tiers = groups.pop("tiers", None)
        self.tiers = None if tiers is None else TierModels(tiers["models"], tiers["made"].cpu())
        rounds = map(TrainedRound.of, groups.values())
        self.waiting = {id_: Update(one, k) for one in rounds for k, id_ in enumerate(one.ids)}

    def _receivers(
        self, ids: Sequence[int], samples: Sequence[np.ndarray], rng: Chance = NO_CHANCE
    ) -> RoundReceivers:
        def losses(models: Tensor, samples: Sequence[np.ndarray]) -> Tensor:
            return self._training.losses(self.side.with_statistics(models, (), self.model), samples)

        like, _ = self._training.layout.split(self.model)
        return RoundReceivers(self._algorithm, ids, self.starting, self.devices, samples, losses, like, rng)

    def _members(self, samples: Mapping[int, int]) -> SessionMembers:
        parameters, _ = self._training.layout.split(self.model)
        return SessionMembers(self._algorithm, self.devices, samples, parameters)
