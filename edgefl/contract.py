"""Values that engine and learning exchange: payload bits, iterations, device ids. No clock, no tensor.

A session is a sequence of stages, a stage a sequence of rounds: the server loops over the stages that the
learner yields, and each round asks its stage to train, then to aggregate what arrived.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, Protocol

__all__ = [
    "AGGREGATION",
    "BEGIN",
    "REPORTED_LOSS",
    "REPORTED_NORM",
    "TRAINING",
    "UPLOAD",
    "AccountingStage",
    "DeviceScores",
    "Evaluation",
    "Expected",
    "ForetellingStage",
    "Learner",
    "LocalRound",
    "Now",
    "Opening",
    "SessionStart",
    "Stage",
    "StageFacts",
    "Staleness",
]


@dataclass(frozen=True)
class Staleness:
    """What an update counts that began from an earlier model, where rounds overlap.

    An update's staleness tau is the number of models made since the one that it began from. With K updates whose
    data have the shares p_k (all 1/K where devices hold alike), the model moves by

        w+ = w + scale x sum_k weight_k p_k delta_k,    weight_k of the factor s(tau_k) by `divisor`.

    Args:
        law: s(tau): constant 1; polynomial (1 + tau)^-exponent; hinge 1 up to `after`, then
            1 / (slope (tau - after) + 1).
        divisor: buffer: weight_k is s_k, so that the sum is over K; weights: s_k / sum_j p_j s_j, a mean; none:
            K s_k, a sum.
        base: delta_k is local_k - received_k, or local_k - w with today's model w.
        scale: step of the server.
        cap: staleness beyond it counts as this; None: as it is.
        tiers: tier of each device by id, 0 the fastest; empty: there are none. With tiers all else is left out: an
            aggregation's updates are of one tier, whose model becomes their mean w_m, and w+ = sum_m a_m w_m, where
            a_m is the share of all aggregations that were of the opposite tier (FedAT).
    """

    law: Literal["constant", "polynomial", "hinge"] = "polynomial"
    exponent: float = 0.5
    slope: float = 10.0
    after: int = 4
    divisor: Literal["buffer", "weights", "none"] = "buffer"
    base: Literal["received", "current"] = "received"
    scale: float = 1.0
    cap: int | None = None
    tiers: tuple[int, ...] = ()

    @property
    def as_sent(self) -> bool:
        """Whether updates count as they were sent, in their mean by data."""
        return (self.law, self.divisor, self.base, self.scale) == ("constant", "buffer", "received", 1.0)

    def factors(self, staleness: Sequence[int]) -> list[float]:
        """Return s(tau) of each update, in (0, 1]."""
        if self.cap is not None:
            staleness = [min(tau, self.cap) for tau in staleness]
        if self.law == "polynomial":
            return [float((1 + tau) ** -self.exponent) for tau in staleness]
        if self.law == "hinge":
            return [1.0 / (self.slope * max(0, tau - self.after) + 1.0) for tau in staleness]
        return [1.0] * len(staleness)

    def weights(self, staleness: Sequence[int], shares: Sequence[float]) -> list[float]:
        """Return scale x weight_k of each update, whose data have these shares, summing to 1."""
        factors, by = self.factors(staleness), self.scale
        if self.divisor == "weights":
            # relative to the greatest, so that equal ones weigh exactly 1
            factors = [factor / max(factors) for factor in factors]
            mean = sum(share * factor for share, factor in zip(shares, factors, strict=True))
            by = self.scale if min(factors) == 1.0 else self.scale / mean
        elif self.divisor == "none":
            by = self.scale * len(factors)
        return [by * factor for factor in factors]


@dataclass(frozen=True)
class SessionStart:
    """What a learner is told when a session begins.

    Args:
        number: of the session, from 1 on.
        ids: devices that are there, sorted.
        longest: most training rounds that the session can have; None: its length is no number of rounds.
        reports: whether devices report the loss of the model they receive, as the scalar REPORTED_LOSS.
        overlapping: what stale updates count in training, if updates of several rounds may be on their way at the
            same time. None: they may not; an update is lost that is not aggregated before the next round begins,
            or that an aggregation leaves out.
        norms: whether devices report the length of their update, as the scalar REPORTED_NORM.
        drops: whether the server drops an update that is not finite (`LocalRound.not_finite`); else it ends the run.
    """

    number: int
    ids: tuple[int, ...]
    longest: int | None
    reports: bool = False
    overlapping: Staleness | None = None
    norms: bool = False
    drops: bool = False

    def numbered(self, ids: Sequence[int]) -> "SessionStart":
        """Return what a federation of these devices (sorted) is told, which knows them as 0, 1, ..."""
        number, stale = {id_: place for place, id_ in enumerate(ids)}, self.overlapping
        if stale is not None and stale.tiers:
            stale = replace(stale, tiers=tuple(stale.tiers[id_] for id_ in ids))
        return replace(self, ids=tuple(number[id_] for id_ in self.ids), overlapping=stale)


@dataclass(frozen=True)
class Now:
    """The moment in which a round begins.

    Args:
        time_s: simulated time.
        progress: share of the session that is over, in [0, 1), as its policy sees it; None: told by the round's
            number over `SessionStart.longest`.
        models: made in this phase before, where rounds overlap; None: as many as the rounds before this one.
    """

    time_s: float = 0.0
    progress: float | None = None
    models: int | None = None


BEGIN = Now()  # of the run


@dataclass(frozen=True)
class Opening:
    """The model with which a session's training begins.

    Args:
        warm_start: its name; empty where none made it.
        weights: saved session -> weight in the model.
        labels: that the session's devices hold when its training begins.
        accuracy: before any training, on the test data of these labels; None where nothing is tested.
        loss: likewise.
    """

    warm_start: str = ""
    weights: Mapping[int, float] = field(default_factory=dict)
    labels: Sequence[int] = ()
    accuracy: float | None = None
    loss: float | None = None


@dataclass(frozen=True)
class DeviceScores:
    """What each of some devices scores on its own test data: rows of evaluation.csv.

    columns: name -> a value per device, in the order of `ids`, None: an empty cell. Names are those of
        `edgefl.engine.records.DeviceScore`.
    """

    ids: tuple[int, ...]
    columns: Mapping[str, tuple[float | None, ...]] = field(default_factory=dict)


@dataclass(frozen=True)
class Evaluation:
    """Accuracy (0 to 1) and loss of the global model on its test data; None: not tested in this round.

    These are of the labels held by the devices that were there when the session began and by those that have taken
    part since: labels of a device that joins are tested from its first round on.

    scalars: further columns of rounds.csv, name -> value, None: an empty cell. Names come with a run's first
        round and stay.
    devices: each device's own scores, in the rounds in which they are written down; None: in others.
    """

    accuracy: float | None
    loss: float | None
    scalars: Mapping[str, float | None] = field(default_factory=dict)
    devices: DeviceScores | None = None


@dataclass(frozen=True)
class LocalRound:
    """What the participants of a round do, one entry per device, in the order of `ids`.

    Args:
        ids: the participants, sorted.
        iterations: local steps that each really does.
        samples: that each processes; compute time and energy are those of this many.
        down_bits: that each receives.
        up_bits: that each sends; the engine adds what it asks for itself.
        scalars: further columns of devices.csv, name -> a value per device, None: an empty cell. Names come
            with a run's first round and stay.
        after: name of such a column -> what a device must have done for its cell to be filled: `TRAINING`, its
            training ended; `AGGREGATION`, its update arrived and was aggregated; `UPLOAD`, its upload began: these
            are empty here, and the stage fills them when it is told (`AccountingStage`). Others are always filled.
        averaged: name of such a column -> the one that says of how many samples it is. rounds.csv has its mean over
            the devices whose cell is filled, their deviation, and the mean over samples, under `averages(name)`.
        not_finite: devices whose update is no number: the server drops it when it has arrived.
    """

    ids: tuple[int, ...]
    iterations: tuple[int, ...]
    samples: tuple[int, ...]
    down_bits: tuple[int, ...]
    up_bits: tuple[int, ...]
    scalars: Mapping[str, tuple[float | None, ...]] = field(default_factory=dict)
    after: Mapping[str, str] = field(default_factory=dict)
    averaged: Mapping[str, str] = field(default_factory=dict)
    not_finite: tuple[int, ...] = ()


@dataclass(frozen=True)
class Expected:
    """What devices would do in a round of a stage, one entry each, told before they are chosen.

    Args:
        held: training samples that each holds.
        samples: that each would process.
        down_bits, up_bits: that each would receive and send, before its first part in the session; later the engine
            takes those of the last one.
    """

    ids: tuple[int, ...]
    held: tuple[int, ...]
    samples: tuple[int, ...]
    down_bits: tuple[int, ...]
    up_bits: tuple[int, ...]


def averages(name: str) -> tuple[str, str, str]:
    """Return the columns of rounds.csv that sum up a column of devices: mean, deviation, mean over samples."""
    return name, f"{name}_std", f"{name}_by_samples"


# what a device must have done in a round for a scalar of it to be true
TRAINING, AGGREGATION, UPLOAD = "training", "aggregation", "upload"
# the column with the global model's score on the validation samples
VALIDATION_SCORE = "accuracy_validation"
# the scalar in which devices report the loss of the model they receive, where a session policy asks for it
REPORTED_LOSS = "loss_received"
# the scalar in which they report the length of their update, where a selector asks for it
REPORTED_NORM = "update_norm"


@dataclass(frozen=True)
class StageFacts:
    """What the server needs to know of a stage.

    Args:
        phase: name of its rounds in the tables; rounds of one phase are numbered through a session.
        rounds: how many there are; None: until the session policy ends the session.
        evaluates: whether its rounds move the global model on, which is then tested.
        share: without evaluation, of the devices present that takes part, in (0, 1]: sampled when the session's
            first round of this phase begins, they alone take part in all of the phase, as far as they are still
            there; if all of them have left, they are sampled anew. With evaluation, the selector selects.
        opening: of the stage with which a session's training begins, the model it begins with.
    """

    phase: str
    rounds: int | None
    share: float = 1.0
    evaluates: bool = True
    opening: Opening | None = None


class Stage(Protocol):
    """Consecutive rounds that all do the same thing."""

    @property
    def facts(self) -> StageFacts:
        """What the server needs to know of it."""

    def train(self, ids: Sequence[int], round_: int, now: Now = BEGIN) -> LocalRound:
        """Train on these devices (sorted) in round 1, 2, ... of this phase, which begins now."""

    def aggregate(self, ids: Sequence[int]) -> None:
        """Aggregate the updates that arrived: of each of these devices, its last training that is not aggregated yet.

        A device has at most one update on its way, so its id names the update. Never called without one.
        """

    def evaluate(self, present: Sequence[int] = ()) -> Evaluation | None:
        """Test the global model; None where nothing is trained. Asked only if the stage evaluates.

        Args:
            present: ids of the devices that are there after the round, sorted; none: all of the session count.
        """


class ForetellingStage(Stage, Protocol):
    """A stage that can say beforehand what devices would do, as deciders want to know."""

    def expected(self, ids: Sequence[int]) -> Expected:
        """Tell what these devices (sorted) would do in a round that trains the global model."""


class AccountingStage(Stage, Protocol):
    """A stage that keeps an account of what has left each device, asked where a round has columns after `UPLOAD`."""

    def uploaded(self, ids: Sequence[int]) -> Mapping[str, tuple[float, ...]]:
        """Count an upload of each of these devices, in this order: one that began, whether it arrived or not.

        Args:
            ids: a device is named as often as it has begun to upload since it was named last.

        Returns:
            The columns after `UPLOAD`, a value for each id: the account with this upload and those before it.
        """


class Learner(Protocol):
    """Training as the server sees it."""

    flops_per_sample: float
    payload_bits: int  # of one model transfer where all are alike; a round's own bits stand in LocalRound

    def session(self, start: SessionStart) -> Iterator[Stage]:
        """The stages of a session; each is over, and its model made, when the next is asked for."""
