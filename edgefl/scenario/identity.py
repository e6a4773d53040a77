"""Hash what determines a run, and what determines its training: equal hashes give equal numbers.

A run's hash covers its resolved scenario, the files and samples that it reads, the code of its external components,
and the version of results. A learner's hash covers everything it receives besides the questions asked of it, which a
journal holds.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from edgefl.version import RESULTS_VERSION

LENGTH = 16  # hexadecimal digits of a hash: two of a million runs share one with probability 3e-8
KEYS_SHOWN = 3


@dataclass(frozen=True)
class Identity:
    """Everything that determines a run's results: settings, data, code and the version of results.

    Args:
        scenario: dotted key -> value, all keys that can change results; a file counts by its content, which `data`
            covers, and not by its path.
        data: name of what is read -> its checksum.
        results_version: as `RESULTS_VERSION`.
        code: module of external components -> its code, see `edgefl.config.own_code`.
    """

    scenario: Mapping[str, Any]
    data: Mapping[str, str]
    results_version: int = RESULTS_VERSION
    code: Mapping[str, str] = field(default_factory=dict)

    @property
    def hash(self) -> str:
        """Return the run's hash."""
        what = [sorted(self.scenario.items()), sorted(self.data.items()), self.results_version]
        return hash_of([*what, *([sorted(self.code.items())] if self.code else [])])

    def written(self) -> dict[str, Any]:
        """Return run.json's entry; the scenario is in scenario.yaml."""
        about = {"hash": self.hash, "data": dict(self.data), "results_version": self.results_version}
        return {**about, "code": dict(self.code)} if self.code else about

    def differences(self, other: "Identity") -> list[str]:
        """Return what differs in the other, key by key: `learning.local.lr is 0.1, here 0.2`."""
        pairs = [
            *_unlike(other.scenario, self.scenario),
            *((f"the data of {name}", there, here) for name, there, here in _unlike(other.data, self.data)),
            *((f"the code of {name}", there, here) for name, there, here in _unlike(other.code, self.code)),
        ]
        if self.results_version != other.results_version:
            pairs.append(("the version of results", other.results_version, self.results_version))
        return [f"{key} is {_shown(there)}, here {_shown(here)}" for key, there, here in pairs]


@dataclass(frozen=True)
class LearningIdentity:
    """Everything that determines what learners answer, besides the questions asked of them.

    whole: all of it. pilot: what counts until the end of the pilot sessions, after which the warm start acts.
    pilot_sessions: their number. plain: name of a warm start that trains two further sessions exactly as `previous`
    does; empty for others. leads: whether a run with a `plain` warm start may continue from this run's state after
    these two sessions.
    """

    whole: str
    pilot: str
    pilot_sessions: int
    plain: str = ""
    leads: bool = False


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


def hash_of(value: Any) -> str:
    """Return a short hash of a value that JSON can hold."""
    return hashlib.sha256(json.dumps(value, sort_keys=True, default=str).encode()).hexdigest()[:LENGTH]
