"""What a run is, and what its learner sees, as hashes: equal ones give equal numbers.

A run is named by its resolved scenario, by the files and samples that it reads, by the code of its parts from
outside, and by the version of results. A learner is named by all that it is told beside the questions asked of it,
which a journal holds.
"""

import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from edgefl.config import own_code, registry, shipped
from edgefl.errors import EdgeflError
from edgefl.learning.settings import LearningSettings
from edgefl.scenario.scenario import Scenario, written
from edgefl.scenario.world import World
from edgefl.version import RESULTS_VERSION

WITHOUT_INFLUENCE = ("name",)  # keys of a scenario that cannot change results
LENGTH = 16  # hexadecimal digits of a hash: two of a million runs share one with probability 3e-8
KEYS_SHOWN = 3
DATASET = (
    "learning.dataset."  # in keys of a data set's parameters, of the scenario's or of a federation's own
)


@dataclass(frozen=True)
class Identity:
    """Everything that decides a run's results: settings, data, code and the version of results.

    Args:
        scenario: dotted key -> value, all keys that can change results; a file counts by its content, in data, and
            not by the place where it lies.
        data: what is read -> its checksum.
        results_version: of `RESULTS_VERSION`.
        code: module of parts from outside -> what its code is, see `edgefl.config.own_code`.
    """

    scenario: Mapping[str, Any]
    data: Mapping[str, str]
    results_version: int = RESULTS_VERSION
    code: Mapping[str, str] = field(default_factory=dict)

    @property
    def hash(self) -> str:
        """Return its name."""
        what = [sorted(self.scenario.items()), sorted(self.data.items()), self.results_version]
        return _hash([*what, *([sorted(self.code.items())] if self.code else [])])

    def written(self) -> dict[str, Any]:
        """Return what run.json says of it; the scenario stands in scenario.yaml."""
        about = {"hash": self.hash, "data": dict(self.data), "results_version": self.results_version}
        return {**about, "code": dict(self.code)} if self.code else about

    def differences(self, other: "Identity") -> list[str]:
        """Say what differs in the other, key by key: `learning.local.lr is 0.1, here 0.2`."""
        pairs = [
            *_unlike(other.scenario, self.scenario),
            *((f"the data of {name}", there, here) for name, there, here in _unlike(other.data, self.data)),
            *((f"the code of {name}", there, here) for name, there, here in _unlike(other.code, self.code)),
        ]
        if self.results_version != other.results_version:
            pairs.append(("the version of results", other.results_version, self.results_version))
        return [f"{key} is {_shown(there)}, here {_shown(here)}" for key, there, here in pairs]


def identity(scenario: Scenario, checksums: Mapping[str, str], learner: Any = None) -> Identity:
    """Return what a run is.

    Args:
        checksums: of data sets, as `Loaded.checksums` gives them.
        learner: from outside, or what makes it; None: the run has none.

    Raises:
        EdgeflError: a file that it reads is not there.
    """
    keys = dict(leaves(written(scenario)))
    data = {
        key: _of_file(key, Path(value))
        for key, value in keys.items()
        # a data set may be a folder, or a name in a hub: its samples are hashed
        if key.endswith(".path") and value and (DATASET not in key or Path(value).is_file())
    }
    data |= {key: checksum[:LENGTH] for key, checksum in checksums.items()}
    if learner is not None:  # no run without it is this one
        data["learner"] = own_code.name_of(learner)
    # where a file lies does not count if what is in it does; of another path only its name is known
    hashed = {key for key in keys if key in data or DATASET in key}
    counted = {
        key: value
        for key, value in keys.items()
        if key not in WITHOUT_INFLUENCE
        and not (key in hashed and isinstance(value, str) and os.path.isabs(value))
    }
    return Identity(counted, data, code=own_code.named_in(keys.values()) | own_code.of_learner(learner))


@dataclass(frozen=True)
class LearningIdentity:
    """Everything that decides what learners answer, beside the questions asked of them.

    whole: all of it. pilot: what counts up to the end of the pilot sessions, when the warm start comes to work.
    pilot_sessions: how many these are. plain: name of a warm start that trains two further sessions as `previous`
    does, and nothing beside them; empty: of another one. leads: whether such a run may go on from this one's state
    behind these two sessions.
    """

    whole: str
    pilot: str
    pilot_sessions: int
    plain: str = ""
    leads: bool = False


def learning_identity(world: World, checksums: Mapping[str, str]) -> LearningIdentity | None:
    """Return what decides the answers of a run's learners; None: nothing is trained, or nobody else asks the same.

    Where rounds overlap, the radio decides which updates arrive first, so that no other run's training is this one's:
    those of one federation, or of several, which ask in turn as the band lets them.
    """
    scenario = world.scenario
    if scenario.federations or scenario.learning is None or scenario.rounds.overlap:
        return None
    settings = written(scenario)["learning"]
    told: list[Any] = [
        checksums["learning.dataset"],
        RESULTS_VERSION,
        scenario.seed,
        world.count,
        world.served,
        [[population.start, population.stop] for population in world.populations],
        *map(_array, (world.movement.positions_m(0.0), world.cells_m, world.fleet.samples_kept)),
    ]
    if scenario.cloud is not None:  # its models are in what a run lends
        told.append("cloud")
    if code := own_code.named_in([settings]):
        told.append(code)
    if scenario.learning.initial is not None:
        told.append(_of_file("learning.initial.path", scenario.learning.initial.path))
    warm_start = scenario.learning.warm_start
    as_previous = _trains_two_as_previous(world, scenario.learning)
    return LearningIdentity(
        whole=_hash([settings, *told]),
        pilot=_hash([{key: value for key, value in settings.items() if key != "warm_start"}, *told]),
        pilot_sessions=scenario.learning.pilot_sessions,
        plain=registry.name_of("warm_starts", warm_start) if as_previous and not warm_start.probes else "",
        leads=as_previous and warm_start.keeps_first_two,
    )


def _trains_two_as_previous(world: World, learning: LearningSettings) -> bool:
    """Whether sessions P + 1 and P + 2 are trained as by `previous`, also where probe rounds come before them.

    These cost time, by which data may drift, and in which cells' questions change their order. Where privacy is
    accounted for there are no probes.
    """
    # said by the class itself: one that inherits from it may open otherwise
    says: bool = vars(type(learning.warm_start)).get("first_two_as_previous", False)
    return says and len(world.served) == 1 and world.scenario.cloud is None and learning.drift is None


def leaves(value: Any, keys: tuple[str, ...] = ()) -> Iterator[tuple[str, Any]]:
    """Yield the dotted keys of a document, and what they hold; empty mappings are values."""
    if isinstance(value, dict) and value:
        for key, item in value.items():
            yield from leaves(item, (*keys, str(key)))
    else:
        yield ".".join(keys), value


def in_short(differences: list[str]) -> str:
    """Join the first few differences."""
    more = len(differences) - KEYS_SHOWN
    return "; ".join(differences[:KEYS_SHOWN]) + (f"; and {more} more" if more > 0 else "")


def _unlike(there: Mapping[str, Any], here: Mapping[str, Any]) -> list[tuple[str, Any, Any]]:
    missing = object()
    return [
        (key, there.get(key), here.get(key))
        for key in {**there, **here}
        if there.get(key, missing) != here.get(key, missing)
    ]


def _shown(value: Any) -> str:
    return "not given" if value is None else str(value)


def _hash(value: Any) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True, default=str).encode()).hexdigest()[:LENGTH]


def _array(values: np.ndarray | None) -> str | None:
    if values is None:
        return None
    whole = np.ascontiguousarray(values)
    return hashlib.sha256(f"{whole.shape}{whole.dtype}".encode() + whole.tobytes()).hexdigest()


def _of_file(key: str, path: Path) -> str:
    try:
        with shipped.data(path).open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()[:LENGTH]
    except OSError as error:
        raise EdgeflError(f"{path}: cannot be read ({error.strerror})", tuple(key.split("."))) from error
