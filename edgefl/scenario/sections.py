"""The sections of a scenario that must fit together, and the rows of the table by which `fits` checks them."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from operator import attrgetter

from edgefl.config import registry
from edgefl.config.scenario_fields import Section
from edgefl.engine.air.radio_settings import RadioSettings
from edgefl.learning.algorithms import Algorithm
from edgefl.scenario.own_sections import OwnSections

Place = tuple[str, ...]
Broken = Iterator[tuple[Place, str, str]]
ALGORITHMS = (
    "{algorithms}"  # stands in a remedy for the names of the shipped algorithms that fit the scenario
)


@dataclass(frozen=True)
class Sections:
    """The sections that must fit together for a federation: its own sections, and those shared by all federations.

    energy_excess: whether the energy of rounds is compared with the minimum. others: sections of the world and of
    each class of devices, by place.
    """

    own: OwnSections
    radio: RadioSettings
    energy_excess: bool = False
    others: Mapping[tuple[str, ...], Section] = field(default_factory=dict)

    @property
    def several(self) -> bool:
        """Whether other federations share the band."""
        return bool(self.own.name)

    @property
    def algorithm(self) -> Algorithm | None:
        """The federation's learning algorithm, or None if the federation trains nothing."""
        return None if self.own.learning is None else self.own.learning.algorithm

    @property
    def server(self) -> str:
        """The server's name as error messages state it, such as `the server fedbuff`."""
        return f"the server {registry.name_of('servers', self.own.rounds.server)}"

    def named(self, key: str) -> str:
        """Return the name of the component at a key of `learning`, such as local.optimiser."""
        return registry.name_of(f"{key.rpartition('.')[2]}s", attrgetter(key)(self.own.learning))

    @property
    def use_others(self) -> str:
        """The remedy to use other algorithms; a user's algorithm may override `aggregate` and compute the same."""
        return f"use {ALGORITHMS}{', or declare `uses` in its class' * (':' in self.named('algorithm'))}"


@dataclass(frozen=True)
class Row:
    """A requirement that some components have: its code, its wording, and a function that finds conflicts.

    broken: yields the place, the wording and the remedy of each conflict; the remedy may contain `ALGORITHMS`.
    """

    code: str
    needs: str
    broken: Callable[[Sections], Broken]
