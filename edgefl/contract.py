"""Values that engine and learning exchange, such as payload bits, iterations and device ids, but no tensors.

A session is a sequence of stages, and a stage is a sequence of rounds. The server loops over the stages that the
learner yields, and each round calls its stage to train, then to aggregate the updates that arrived.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
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
    "WeighingStage",
]


@dataclass(frozen=True)
class Staleness:
    """How a server weights stale updates (trained from an earlier global model) if rounds overlap.

    An update's staleness tau is the number of global models made since the model from which its training started. An
    aggregation of K updates with data shares p_k (all 1/K if devices hold equal amounts) computes

        w+ = w + scale x sum_k weight_k p_k delta_k,

    where `divisor` determines weight_k from the staleness factor s(tau_k).

    Args:
        law: form of s(tau): constant: 1; polynomial: (1 + tau)^-exponent; hinge: 1 up to `after`, then 1 / (slope
            (tau - after) + 1).
        divisor: the rule for weight_k: buffer: s_k, which with equal shares divides the sum by K; weights: s_k /
            sum_j p_j s_j, a weighted mean; none: K s_k, a sum.
        base: what delta_k is: received: local_k - received_k; current: local_k - w with the current model w.
        scale: step size of the server.
        cap: upper bound on the staleness; larger values are clipped; None if unbounded.
        tiers: tier of each device by id, 0 for the fastest; empty without tiers. With tiers, FedAT's rule replaces
            all others: an aggregation's updates come from one tier, whose model w_m becomes their mean, and w+ =
            sum_m a_m w_m, where a_m is the share of all aggregations made by the tier that is opposite in speed.
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
        """Whether the server weights updates by data size only, without any discount for staleness."""
        return (self.law, self.divisor, self.base, self.scale) == ("constant", "buffer", "received", 1.0)

    def factors(self, staleness: Sequence[int]) -> list[float]:
        """Return the factor s(tau) of each update, in (0, 1]."""
        if self.cap is not None:
            staleness = [min(tau, self.cap) for tau in staleness]
        if self.law == "polynomial":
            return [float((1 + tau) ** -self.exponent) for tau in staleness]
        if self.law == "hinge":
            return [1.0 / (self.slope * max(0, tau - self.after) + 1.0) for tau in staleness]
        return [1.0] * len(staleness)

    def weights(self, staleness: Sequence[int], shares: Sequence[float]) -> list[float]:
        """Return scale x weight_k of each update, given their shares of data, which sum to 1."""
        factors, by = self.factors(staleness), self.scale
        if self.divisor == "weights":
            # divide by the largest factor, so that equal factors become exactly 1
            factors = [factor / max(factors) for factor in factors]
            mean = sum(share * factor for share, factor in zip(shares, factors, strict=True))
            by = self.scale if min(factors) == 1.0 else self.scale / mean
        elif self.divisor == "none":
            by = self.scale * len(factors)
        return [by * factor for factor in factors]


@dataclass(frozen=True)
class SessionStart:
    """The arguments with which a learner begins a session.

    Args:
        number: the session's number, from 1.
        ids: ids of the devices present, sorted.
        longest: maximum number of training rounds in the session, or None if their number is not limited.
        reports: whether devices report the loss of the model they receive, as the scalar REPORTED_LOSS.
        overlapping: weighting of stale updates in training, if updates of several rounds may be under way at the same
            time. If None, an update is lost unless it is aggregated before the next round begins.
        norms: whether devices report the length of their update, as the scalar REPORTED_NORM.
        drops: whether the server drops an update that is not finite (`LocalRound.not_finite`); if not, the run ends.
    """

    number: int
    ids: tuple[int, ...]
    longest: int | None
    reports: bool = False
    overlapping: Staleness | None = None
    norms: bool = False
    drops: bool = False

    def numbered(self, ids: Sequence[int]) -> "SessionStart":
        """Return the session's start for one federation's devices (sorted), renumbered 0, 1, ..."""
        number, stale = {id_: place for place, id_ in enumerate(ids)}, self.overlapping
        if stale is not None and stale.tiers:
            stale = replace(stale, tiers=tuple(stale.tiers[id_] for id_ in ids))
        return replace(self, ids=tuple(number[id_] for id_ in self.ids), overlapping=stale)


@dataclass(frozen=True)
class Now:
    """The moment at which a round begins.

    Args:
        time_s: simulated time.
        progress: elapsed fraction of the session, in [0, 1), as the session policy estimates it; by default the
            number of earlier rounds divided by `SessionStart.longest`.
        models: how many models were made earlier in this phase, if rounds overlap; by default the number of earlier
            rounds.
    """

    time_s: float = 0.0
    progress: float | None = None
    models: int | None = None


BEGIN = Now()  # the moment at which a run begins


@dataclass(frozen=True)
class Opening:
    """The model with which a session's training begins.

    Args:
        warm_start: name of the warm start; empty if there is none.
        weights: saved session -> weight of its model in the opening model.
        labels: the labels that the session's devices hold when its training begins.
        accuracy: accuracy of this model on test data of `labels` before any training, or None without a test.
        loss: mean loss of this model in the test that gives `accuracy`.
    """

    warm_start: str = ""
    weights: Mapping[int, float] = field(default_factory=dict)
    labels: Sequence[int] = ()
    accuracy: float | None = None
    loss: float | None = None


@dataclass(frozen=True)
class DeviceScores:
    """Scores of devices on their own test data, the rows of evaluation.csv.

    columns: name of a column -> a value per device, in the order of `ids`, or None for an empty table cell. The
        names are fields of `edgefl.engine.records.DeviceScore`.
    """

    ids: tuple[int, ...]
    columns: Mapping[str, tuple[float | None, ...]] = field(default_factory=dict)


@dataclass(frozen=True)
class Evaluation:
    """Accuracy (0 to 1) and loss of the global model on its test data, None if this round has no test.

    The test covers the labels of the devices that were present when the session began and of the devices that have
    taken part since: labels of a device that joins are tested from its first round on.

    scalars: extra columns of rounds.csv, name -> value, None for an empty table cell. Names are fixed in a run's
        first round.
    devices: each device's own scores in rounds that record them, otherwise None.
    """

    accuracy: float | None
    loss: float | None
    scalars: Mapping[str, float | None] = field(default_factory=dict)
    devices: DeviceScores | None = None


@dataclass(frozen=True)
class LocalRound:
    """The work of a round's participants, one entry per device, in the order of `ids`.

    Args:
        ids: the participants, sorted.
        iterations: how many local steps each device takes.
        samples: how many samples each device processes, which determines compute time and energy.
        down_bits: how many bits each device receives.
        up_bits: how many bits each device sends, without the reports that the engine adds.
        scalars: extra columns of devices.csv, name -> a value per device, None for an empty table cell. Names are
            fixed in a run's first round.
        after: name of an extra column -> the step after which a device's table cell is filled: `TRAINING`, its
            training ended; `AGGREGATION`, its update arrived and was aggregated; `UPLOAD`, its upload began (these
            columns are empty here; `AccountingStage` fills them). All other columns are always filled.
        averaged: name of an extra column -> the column with each device's number of samples. rounds.csv has the mean
            over devices with a filled cell, the standard deviation and the mean over samples, under `averages(name)`.
        not_finite: devices with an update that is not finite, which the server drops on arrival.
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
class LocalRoundUnderWay(LocalRound):
    """A round in which training is under way; only the scalars are unknown, and `whole` waits for them."""

    whole: Callable[[], LocalRound] = field(kw_only=True)


@dataclass(frozen=True)
class Expected:
    """The expected work of each candidate in a round of a stage, known before participants are selected.

    Args:
        held: how many training samples each device holds.
        samples: how many samples each device would process.
        down_bits, up_bits: how many bits each device would receive and send in its first round of a session; for
            later rounds the engine uses the bits of the device's last participation.
    """

    ids: tuple[int, ...]
    held: tuple[int, ...]
    samples: tuple[int, ...]
    down_bits: tuple[int, ...]
    up_bits: tuple[int, ...]


def averages(name: str) -> tuple[str, str, str]:
    """Return the columns of rounds.csv for a column of devices.csv: mean, standard deviation, mean over samples."""
    return name, f"{name}_std", f"{name}_by_samples"


# the step that a device must complete in a round before its value in a column is known
TRAINING, AGGREGATION, UPLOAD = "training", "aggregation", "upload"
# the column with the global model's score on the validation samples
VALIDATION_SCORE = "accuracy_validation"
# the scalar in which devices report the loss of the model they receive, if a session policy needs it
REPORTED_LOSS = "loss_received"
# the scalar in which devices report the length of their update, if a selector needs it
REPORTED_NORM = "update_norm"


@dataclass(frozen=True)
class StageFacts:
    """The properties of a stage that the server uses.

    Args:
        phase: name of the stage's rounds in the tables; a phase's rounds are numbered throughout a session.
        rounds: number of the stage's rounds, or None if the session policy ends the session.
        evaluates: whether the stage's rounds train the global model, which is then tested.
        share: share of the present devices, in (0, 1], that takes part if `evaluates` is false: these devices are
            sampled when the session's first round of this phase begins, and take part in the whole phase while they
            are present; if all of them have left, devices are sampled again. If `evaluates` is true, a selector
            chooses participants.
        opening: in the stage that begins a session's training, the model with which training begins.
    """

    phase: str
    rounds: int | None
    share: float = 1.0
    evaluates: bool = True
    opening: Opening | None = None


class Stage(Protocol):
    """Consecutive rounds of the same kind."""

    @property
    def facts(self) -> StageFacts:
        """The properties of the stage that the server uses."""

    def train(self, ids: Sequence[int], round_: int, now: Now = BEGIN) -> LocalRound:
        """Train on given devices (sorted) in a round of this phase (1, 2, ...), which begins now."""

    def aggregate(self, ids: Sequence[int]) -> None:
        """Aggregate the updates that arrived, which are the latest outstanding updates of the given devices.

        A device has at most one update under way, so its id identifies the update. `ids` is never empty.
        """

    def evaluate(self, present: Sequence[int] = ()) -> Evaluation | None:
        """Test the global model; return None in a run without training. Called only for stages that evaluate.

        Args:
            present: ids of the devices present after the round, sorted; if empty, all devices of the session.
        """


class WeighingStage(Stage, Protocol):
    """A stage that accepts a weight for each update, as servers that weight updates require."""

    def aggregate(self, ids: Sequence[int], weights: Sequence[float] | None = None) -> None:
        """Aggregate as `Stage` does; with weights, the model moves by the sum of weight x data share x change."""


class ForetellingStage(Stage, Protocol):
    """A stage that can predict the work of devices, which deciders use."""

    def expected(self, ids: Sequence[int]) -> Expected:
        """Return the expected work of the given devices (sorted) in a round that trains the global model."""


class AccountingStage(Stage, Protocol):
    """A stage that counts each device's uploads, which columns filled after `UPLOAD` require."""

    def uploaded(self, ids: Sequence[int]) -> Mapping[str, tuple[float, ...]]:
        """Count uploads that have begun, one per entry of `ids` and in this order, whether they arrived or not.

        Args:
            ids: devices that began an upload since the last call, each listed once per upload.

        Returns:
            For each column marked `UPLOAD`, a value per entry of `ids`: the device's total including this upload.
        """


class Learner(Protocol):
    """The interface through which a server trains models, session by session and stage by stage."""

    flops_per_sample: float
    payload_bits: int  # size of a transfer, if the size is constant; LocalRound has the bits of each round

    def session(self, start: SessionStart) -> Iterator[Stage]:
        """Yield the stages of a session; requesting the next stage ends the current one and makes its model."""
