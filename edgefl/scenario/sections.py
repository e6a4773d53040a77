"""The sections of a scenario; `fits` checks whether they go together."""

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


@dataclass(frozen=True)
class Sections:
    """The sections that must fit together in one federation: its own, and those of all.

    energy_excess: whether rounds are compared with their minimum joules. others: sections of the world, and those of
    each kind of devices, by place.
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
        """The algorithm, if anything is trained."""
        return None if self.own.learning is None else self.own.learning.algorithm

    @property
    def server(self) -> str:
        """The server, as errors name it."""
        return f"the server {registry.name_of('servers', self.own.rounds.server)}"

    def named(self, key: str) -> str:
        """Return the name of the component at a key of `learning`, such as local.optimiser."""
        return registry.name_of(f"{key.rpartition('.')[2]}s", attrgetter(key)(self.own.learning))


@dataclass(frozen=True)
class Row:
    """One need of components: its code, its words, and what conflicts with it.

    broken: yields the place, the words for the conflict, and the remedy.
    """

    code: str
    needs: str
    broken: Callable[[Sections], Broken]


def fitting(suits: Callable[[Algorithm], bool]) -> str:
    """Return the names of the suitable shipped algorithms, as a remedy lists them."""
    made = {name: registry.get("algorithms", name)() for name in registry.names("algorithms")}
    names = [name for name, one in made.items() if isinstance(one, Algorithm) and suits(one)]
    return ", ".join(names[:-1]) + f" or {names[-1]}" if len(names) > 1 else "".join(names)
