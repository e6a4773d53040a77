"""The state of a cell's learner, in the form that snapshots store."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, NamedTuple

from pydantic import TypeAdapter
from torch import Tensor

from edgefl.contract import Opening, SessionStart
from edgefl.learning.drifts import Moment
from edgefl.learning.updates.trained_model import TrainedModel
from edgefl.learning.warm_starts import Final, Saved

TensorState = tuple[dict[str, Tensor], dict[str, Any]]  # tensors by name, and facts for JSON


@dataclass(frozen=True)
class Reports:
    """The two models' losses by device in a check round, and the devices from which a report arrived."""

    opening: Mapping[int, float] = field(default_factory=dict)
    previous: Mapping[int, float] = field(default_factory=dict)
    arrived: Sequence[int] = ()

    def prefer_previous(self, samples: Mapping[int, int]) -> bool:
        """Return whether the reports that arrived, weighted by data size, favour the previous model."""
        return (
            sum(
                samples[id_] * (self.opening[id_] - self.previous[id_])
                for id_ in self.arrived
                if id_ in self.opening
            )
            > 0
        )


class At(NamedTuple):
    """The position of a round in the run, which names the round's random streams."""

    session: int
    phase: str
    round: int

    def __str__(self) -> str:
        return f"session {self.session}, {self.phase} round {self.round}"


@dataclass(frozen=True)
class RoundFacts:
    """The facts about a round that are known when it begins.

    moment: the moment that determines drifts; a round of another phase has the moment of the next round of the global
    model.
    """

    at: At = field(default_factory=lambda: At(0, "", 0))
    moment: Moment = field(default_factory=lambda: Moment(1, 0.0))


@dataclass
class Progress:
    """The progress of a session, without its models.

    session: the learner's arguments when the session began, without the devices. known: classes that members held at
    the end of the previous session, after any drift. before: rounds of the global model in earlier sessions. stage:
    name of the session's current stage; empty if no session is open. round: the last round that has begun. members:
    devices that were present when the session began, or have taken part since then. labels: the labels that members
    hold; models are tested on these labels. probed: whether a probe's update has arrived. opening: facts about the
    opening model, set when training begins. measured: columns that `learning.theory` computed for the last
    aggregation. models: number of models made in this session, if rounds overlap. ended: rounds of the global model
    in all sessions so far, updated when this session ends.
    """

    session: SessionStart = field(default_factory=lambda: SessionStart(0, (), 1))
    known: Sequence[int] = ()
    before: int = 0
    round: RoundFacts = field(default_factory=RoundFacts)
    stage: str = ""
    labels: Sequence[int] = ()
    members: frozenset[int] = frozenset()
    probed: bool = False
    opening: Opening = field(default_factory=Opening)
    check: Reports = field(default_factory=Reports)
    measured: Mapping[str, float | None] = field(default_factory=dict)
    models: int = 0
    ended: int = 0

    @property
    def trained(self) -> int:
        """The number of rounds of the global model in all sessions so far, including the current session."""
        if self.session.overlapping is None:
            return self.round.moment.round
        return self.before + self.models  # count models, since a round that has begun may never make a model


@dataclass
class Federation:
    """The models of one cell's learner, from session to session, and the progress of the current session.

    model: the global model. probe: the auxiliary model, while a session probes. twin: a second global model, trained
    on the data after the drift, if the algorithm knows the drift in advance. previous: [M + Q] the global model at
    the end of the last session. pilot: [M + Q] the pilot model w_pilot, once it is made. gradient: [M] the gradient
    G_s of this session. finals: last models of the pilot sessions, until w_pilot is made. saved: the
    sessions after the pilot sessions, with their models; warm starts use them.
    """

    model: TrainedModel
    previous: Tensor
    probe: TrainedModel | None = None
    twin: TrainedModel | None = None
    pilot: Tensor | None = None
    gradient: Tensor | None = None
    finals: list[Final] = field(default_factory=list)
    saved: list[Saved] = field(default_factory=list)
    now: Progress = field(default_factory=Progress)

    def state(self) -> TensorState:
        """Return the whole state, except for updates that a resumed run trains again."""
        tensors: dict[str, Tensor] = {
            "previous": self.previous,
            **_under("model", self.model.tensors()),
        }
        for name, tensor in (("pilot", self.pilot), ("gradient", self.gradient)):
            if tensor is not None:
                tensors[name] = tensor
        for i, final in enumerate(self.finals):
            tensors[f"finals.{i}"] = final.model
        for i, saved in enumerate(self.saved):
            tensors[f"saved.{i}.model"] = saved.model
            if saved.gradient is not None:
                tensors[f"saved.{i}.gradient"] = saved.gradient
        facts: dict[str, Any] = {
            "finals": [final.accuracy for final in self.finals],
            "saved": [saved.session for saved in self.saved],
            "probes": self.probe is not None,
            "now": {**asdict(self.now), "members": sorted(self.now.members)},
        }
        if self.twin is not None:
            tensors |= _under("twin", self.twin.tensors())
            tensors |= _under("devices of twin", self.twin.devices.tensors())
        if self.probe is not None:
            tensors |= _under("probe.model", self.probe.tensors())
            tensors |= _under("probe.devices", self.probe.devices.tensors())
        return tensors, facts

    def restore(self, tensors: Mapping[str, Tensor], facts: Mapping[str, Any], probe: TrainedModel) -> None:
        """Replace the whole state by a state that `state` returned.

        Args:
            probe: a fresh auxiliary model, which is used if the state has an auxiliary model.
        """
        like = self.previous
        here = {name: tensor.to(like.device) for name, tensor in tensors.items()}
        self.model.restore(_below("model", here))
        if self.twin is not None:
            self.twin.restore(_below("twin", here))
            self.twin.devices.restore(_below("devices of twin", here))
        self.previous = here["previous"]
        self.pilot, self.gradient = here.get("pilot"), here.get("gradient")
        self.finals = [Final(here[f"finals.{i}"], accuracy) for i, accuracy in enumerate(facts["finals"])]
        self.saved = [
            Saved(session, here[f"saved.{i}.model"], here.get(f"saved.{i}.gradient"))
            for i, session in enumerate(facts["saved"])
        ]
        self.now = TypeAdapter(Progress).validate_python(facts["now"])  # JSON made strings of device ids
        self.probe = None
        if facts["probes"]:
            probe.restore(_below("probe.model", here))
            probe.devices.restore(_below("probe.devices", here))
            self.probe = probe


def _under(prefix: str, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    return {f"{prefix}.{name}": tensor for name, tensor in tensors.items()}


def _below(prefix: str, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    return {
        name.removeprefix(f"{prefix}."): tensor
        for name, tensor in tensors.items()
        if name.startswith(f"{prefix}.")
    }
