"""Arguments and results of an algorithm's methods: the models that devices receive, train and send."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol, Self

from edgefl.learning.chance import NO_CHANCE, Chance
from edgefl.learning.tensors import Tensor

ServerState = Mapping[str, Tensor]
# vectors that k devices keep: name -> [k, M]
Vectors = Mapping[str, Tensor]
# key of the gradients [k, M] at the received model, which `correct` receives if `whole_gradients` is True
RECEIVED_GRADIENT = "received gradient"
# an algorithm's notes about each device of a round: name -> [K, ...]
Notes = Mapping[str, Tensor]


@dataclass(frozen=True)
class Received:
    """The models that a round's devices receive and start local training from, with notes and sizes.

    start: one model for all devices [M], or one for each device [K, M].
    notes: notes that `Trained` and `Updates` pass on; notes with one number per device become columns of devices.csv.
    bits: how many bits each device receives, [K] integers; by default the bits of its vectors.
    vectors: how many vectors of length M each device receives, [K] integers; by default `vectors_down`.
    """

    start: Tensor
    notes: Notes = field(default_factory=dict)
    bits: Tensor | None = None
    vectors: Tensor | None = None


@dataclass(frozen=True)
class Sent:
    """The uploads of k devices in a round, with notes and sizes.

    rows: the rows that `aggregate` receives instead of the local models, [k, M].
    notes: extra notes by name, [k, ...], which are treated like the notes of `Received`.
    bits: how many bits each device sends, [k] integers; by default the bits of `vectors_up` vectors.
    """

    rows: Tensor
    notes: Notes = field(default_factory=dict)
    bits: Tensor | None = None


class _AtARate:
    """Base class of `Trained` and `Updates`, which contain the learning rate of local training."""

    lr: float | Tensor

    @property
    def at_rest(self) -> bool:
        """Whether the round's learning rate was 0, so that no model moved, and changes cannot be divided by it."""
        return isinstance(self.lr, float) and self.lr == 0


@dataclass(frozen=True)
class Trained(_AtARate):
    """The results of k devices after local training, in order of device id.

    local: the local models, [k, M].
    start: the model that all devices received [M], or the model that each device received [k, M].
    iterations: how many local steps each device took, [k], at least 1.
    travel: [k] a_k in FedNova: start - local = lr x a weighted sum of the steps' gradients, and a_k is the sum of the
        weights. Without momentum a_k is the number of steps e_k, with momentum rho it is sum_s (1 - rho^(e_k - s +
        1)) / (1 - rho) over the steps s = 1 .. e_k. nan if changes are not sums of gradients, as with Adam; see
        `needs_sgd`.
    lr: local learning rate, or [k] one rate per device. notes: notes of `Received`. rng: random numbers of these
    devices; `upload` and `keep` receive different numbers. gradients: [k, M] the gradient of the loss on all samples
    of each device, at its local model; available in `upload` only, with `whole_gradients`.
    """

    local: Tensor
    start: Tensor
    iterations: Tensor
    travel: Tensor
    lr: float | Tensor
    notes: Notes
    rng: Chance = NO_CHANCE
    gradients: Tensor | None = None

    def part(self, begin: int, end: int) -> Self:
        """Return the results of the devices at positions `begin` to `end` - 1."""
        return replace(
            self,
            local=self.local[begin:end],
            start=self.start if self.start.dim() == 1 else self.start[begin:end],
            iterations=self.iterations[begin:end],
            travel=self.travel[begin:end],
            lr=self.lr if isinstance(self.lr, float) else self.lr[begin:end],
            notes={name: note[begin:end] for name, note in self.notes.items()},
            rng=self.rng.part(begin, end),
            gradients=None if self.gradients is None else self.gradients[begin:end],
        )


@dataclass(frozen=True)
class Updates(_AtARate):
    """The updates of K devices that reached the server, in order of device id.

    rows: what the devices sent, [K, M]: their local models, unless the algorithm's `upload` returns something else.
    start, iterations, travel: values of each device, as in `Trained`; if coding changed the models on the downlink
        (`received`), start is the model before coding, and the rows are shifted by the difference.
    lr: local learning rate, or [K] one rate per device if the updates come from different rounds. shares: [K]
    each device's share of all samples of the K devices, or 1/K with `weighs_equally`. coverage: these devices'
    share of the samples of all devices in the session, in (0, 1]. notes: notes of `Received` and `Sent`. rng: random
    numbers of the server.
    local: [K, M] local models, for an extra vector computed from them (`vectors_up`), sent unencoded; None if `rows`
    are the local models. received: [M] or [K, M] the models that devices actually received; None if they received
    `start`. staleness: if rounds overlap, how many global models the server has made since training of the oldest
    update began, at most the server's `max_staleness` with `beyond: cap`.
    """

    rows: Tensor
    start: Tensor
    shares: Tensor
    coverage: float
    iterations: Tensor
    travel: Tensor
    lr: float | Tensor
    notes: Notes
    rng: Chance = NO_CHANCE
    local: Tensor | None = None
    received: Tensor | None = None
    staleness: int = 0

    def mean(self) -> Tensor:
        """Return the mean [M] of the devices' uploads, weighted by data size."""
        return self.shares @ self.rows

    def moved(self, weights: Tensor) -> Tensor:
        """Return the sum of (received - local) [M], weighted by `weights` [K], even if devices sent other rows."""
        local = self.rows if self.local is None else self.local
        received = self.start if self.received is None else self.received
        if received.dim() == 1:
            return weights.sum() * received - weights @ local
        return weights @ (received - local)

    def mean_change(self) -> Tensor:
        """Return the mean change Delta [M], the mean of row - start weighted by data size."""
        return self.mean() - (self.start if self.start.dim() == 1 else self.shares @ self.start)


class Members(Protocol):
    """The devices of a session, as the algorithm accesses them: through the vectors that the devices keep."""

    def mean(self, name: str) -> Tensor:
        """Return the mean [M] of a kept vector, weighted by data size; a device without this vector counts as 0."""

    def shift(self, name: str, by: Tensor) -> None:
        """Add `by` [M] to the vector of this name on each device."""

    def forget(self, name: str) -> None:
        """Delete the vector of this name on all devices of the session."""


class Receivers(Protocol):
    """The K devices of a round, before they receive anything."""

    @property
    def ids(self) -> Sequence[int]:
        """The ids of the round's devices, sorted."""

    @property
    def starting(self) -> Tensor:
        """Whether each device [K] was present at the session's start, and none of its updates has arrived since."""

    @property
    def rng(self) -> Chance:
        """The random numbers of the round's devices; for `receive` only, because tests draw no random numbers."""

    def own(self, name: str, missing: Tensor) -> Tensor:
        """Return the vectors [K, M] that devices keep under this name, or `missing` [M] where there is none."""

    def remembered(self, name: str, missing: float) -> Tensor:
        """Return the notes [K] of this name from each device's last round, or `missing` where there is none."""

    def losses(self, models: Tensor) -> Tensor:
        """Compute the mean loss [K, C] of C models [C, M] on each device's training data; 0 without data."""
