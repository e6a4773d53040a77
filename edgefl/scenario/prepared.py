"""A scenario with its checksums and hashes, which follow from its values and files and are computed once.

Runs with equal hashes produce identical results. A run's hash covers its resolved scenario, the files and samples
that it reads, the code of its external components, and the version of results. A learner's hash covers everything it
receives besides the calls made to it, which a journal records.
"""

import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from edgefl.config import own_code, registry, scenario_files, shipped
from edgefl.config.yaml_source import write
from edgefl.errors import EdgeflError
from edgefl.run_directory.circumstances import leaves
from edgefl.run_directory.results import Described
from edgefl.scenario.data_loading import Loaded
from edgefl.scenario.scenario import Scenario, dump, written
from edgefl.scenario.world import World
from edgefl.version import RESULTS_VERSION

LENGTH = 16  # hexadecimal digits of a hash; two of a million runs share a hash with probability 3e-8
KEYS_SHOWN = 3


@dataclass(frozen=True)
class Identity:
    """Everything that determines a run's results: settings, data, the user's code and the version of results.

    Args:
        scenario: dotted key -> value, all keys that can change results; a file is identified by its content, which
            `data` covers, and not by its path.
        data: name of a file or data set -> its checksum.
        results_version: version of results, as in `RESULTS_VERSION`.
        code: module of external components -> hash of the module's code, see `edgefl.config.own_code`.
    """

    scenario: Mapping[str, Any]
    data: Mapping[str, str]
    results_version: int = RESULTS_VERSION
    code: Mapping[str, str] = field(default_factory=dict)

    @property
    def hash(self) -> str:
        """The hash of the run's settings, data, code and version of results."""
        what = [sorted(self.scenario.items()), sorted(self.data.items()), self.results_version]
        return _hash_of([*what, *([sorted(self.code.items())] if self.code else [])])

    @property
    def learned_from(self) -> dict[str, str]:
        """The part of `data` that training reads: data sets, each as a whole, and initial models."""
        return {
            key: its for key, its in self.data.items() if "learning" in key.split(".") and DATASET not in key
        }

    def written(self) -> dict[str, Any]:
        """Return run.json's entry on the run's identity; the settings are in scenario.yaml."""
        about = {"hash": self.hash, "data": dict(self.data), "results_version": self.results_version}
        return {**about, "code": dict(self.code)} if self.code else about

    def differences(self, other: "Identity") -> list[str]:
        """Return the differences from another run's identity by key, such as `learning.local.lr is 0.1, here 0.2`."""
        pairs = [
            *_unlike(_counted(other.scenario, other.data), self.scenario),
            *((f"the data of {name}", there, here) for name, there, here in _unlike(other.data, self.data)),
            *((f"the code of {name}", there, here) for name, there, here in _unlike(other.code, self.code)),
        ]
        if self.results_version != other.results_version:
            pairs.append(("the version of results", other.results_version, self.results_version))
        return [f"{key} is {_shown(there)}, here {_shown(here)}" for key, there, here in pairs]


@dataclass(frozen=True)
class LearningIdentity:
    """The hashes of everything that determines the answers of learners, besides the calls made to them.

    whole: hash of all settings. pilot: hash of all settings except the warm start, which takes effect only after the
    pilot sessions. pilot_sessions: number of pilot sessions. plain: name of the warm start if it trains two more
    sessions exactly as `previous` does, otherwise empty. leads: whether a run with a `plain` warm start may continue
    from this run's state after the two sessions that follow the pilot sessions.
    """

    whole: str
    pilot: str
    pilot_sessions: int
    plain: str = ""
    leads: bool = False


def in_short(differences: list[str]) -> str:
    """Join the first few differences between runs into a phrase that also states how many are left out."""
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


def _hash_of(value: Any) -> str:
    """Return the first LENGTH hexadecimal digits of the hash of a value that JSON can hold."""
    return hashlib.sha256(json.dumps(value, sort_keys=True, default=str).encode()).hexdigest()[:LENGTH]


WITHOUT_INFLUENCE = ("name",)  # keys of a scenario that cannot change results
# part of the dotted keys of a data set's parameters, in the scenario or in a federation
DATASET = "learning.dataset."


def _counted(keys: Mapping[str, Any], data: Mapping[str, str]) -> dict[str, Any]:
    """Keep the keys that can change results, given the checksums of `data`.

    The path of a file whose content is hashed is left out; any other path counts as text.
    """
    hashed = {key for key in keys if key in data or DATASET in key}
    return {
        key: value
        for key, value in keys.items()
        if key not in WITHOUT_INFLUENCE
        and not (key in hashed and isinstance(value, str) and os.path.isabs(value))
    }


class Prepared:
    """A scenario with its text, its data's checksums and its identity, each computed on first use.

    Args:
        load: function that reads the data sets.
        learner: an external learner, its factory, or None.
    """

    def __init__(self, scenario: Scenario, load: Loaded, learner: Any = None) -> None:
        self.scenario, self._load, self._learner = scenario, load, learner

    @cached_property
    def values(self) -> dict[str, Any]:
        """The complete scenario as plain values, defaults filled in."""
        return written(self.scenario)

    @cached_property
    def described(self) -> Described:
        """The scenario as a run directory stores it: name, seed, the section `record`, and text."""
        one = self.scenario
        parts = {name: dump(one.of_federation(name)) for name in one.federations or ()}
        return Described(one.name, one.seed, one.record, write(self.values), parts)

    @cached_property
    def checksums(self) -> Mapping[str, str]:
        """Dotted key of each data set that a federation trains on -> the checksum of its samples.

        Raises:
            EdgeflError: a data set is unavailable.
        """
        return {
            ".".join(one.place("learning", "dataset")): self._load.checksum(one.learning.dataset)
            for one in self.scenario.by_federation.values()
            if one.learning is not None
        }

    @cached_property
    def identity(self) -> Identity:
        """The identity of the scenario's run, which is everything that determines the results.

        Raises:
            EdgeflError: a file that the scenario names is missing.
        """
        keys = dict(leaves(self.values))
        data = {
            key: _of_file(key, Path(value))
            for key, value in keys.items()
            # if a data set's path is a folder, or a name on a hub, the checksum of its samples identifies the data
            if key.endswith(".path") and value and (DATASET not in key or Path(value).is_file())
        }
        data |= {key: checksum[:LENGTH] for key, checksum in self.checksums.items()}
        if self._learner is not None:  # the same scenario without the external learner is a different run
            data["learner"] = own_code.name_of(self._learner)
        code = own_code.named_in(keys.values()) | own_code.of_learner(self._learner)
        return Identity(_counted(keys, data), data, code=code)

    def learning_identity(self, world: World) -> LearningIdentity | None:
        """Hash everything that determines training, except the calls made to learners.

        Training cannot be shared if rounds overlap, since the radio then decides which updates arrive first, or if
        there are several federations, since the band then determines the order of the calls to their learners.

        Args:
            world: the scenario's world.

        Returns:
            Identity of the training, or None if nothing is trained, or training cannot be shared.
        """
        own = world.alone
        if own is None or own.learning is None or own.rounds.overlap:
            return None
        settings = self.values["learning"]
        told: list[Any] = [
            self.checksums["learning.dataset"],
            RESULTS_VERSION,
            world.streams.seed,
            world.count,
            world.served,
            [[population.start, population.stop] for population in world.populations],
            *map(_array, (world.movement.positions_m(0.0), world.cells_m, world.fleet.samples_kept)),
        ]
        # a lender's state also contains the models that several cells have joined
        told += ["cloud"] * (joined := own.cloud is not None)
        if code := own_code.named_in([settings]):
            told.append(code)
        if own.learning.initial is not None:
            told.append(_of_file("learning.initial.path", own.learning.initial.path))
        warm_start = own.learning.warm_start
        one_model = len(world.served) == 1 and not joined and own.learning.drift is None
        # whether sessions P + 1 and P + 2 are trained as with `previous` even after probe rounds, which take time and
        # reorder the cells' calls; the class itself must declare this, since a subclass may open sessions differently
        as_previous: bool = one_model and vars(type(warm_start)).get("first_two_as_previous", False)
        return LearningIdentity(
            whole=_hash_of([settings, *told]),
            pilot=_hash_of([{key: value for key, value in settings.items() if key != "warm_start"}, *told]),
            pilot_sessions=own.learning.pilot_sessions,
            plain=registry.name_of("warm_starts", warm_start)
            if as_previous and not warm_start.probes
            else "",
            leads=as_previous and warm_start.keeps_first_two,
        )


def _array(values: np.ndarray | None) -> str | None:
    if values is None:
        return None
    whole = np.ascontiguousarray(values)
    return hashlib.sha256(f"{whole.shape}{whole.dtype}".encode() + whole.tobytes()).hexdigest()


def _of_file(key: str, path: Path) -> str:
    """Hash the content of a file, or the names and contents of all files of a folder or pattern."""
    path = shipped.data(path)
    files = scenario_files.files_of(path)
    try:
        digests = []
        for each in files:
            with each.open("rb") as file:
                digests.append(hashlib.file_digest(file, "sha256").hexdigest()[:LENGTH])
        if files == [path]:
            return digests[0]
        top = os.path.commonpath([each.parent for each in files]) if files else path
        return _hash_of(
            [(os.path.relpath(each, top), digest) for each, digest in zip(files, digests, strict=True)]
        )
    except OSError as error:
        raise EdgeflError(f"{path}: cannot be read ({error.strerror})", tuple(key.split("."))) from error
