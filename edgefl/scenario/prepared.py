"""A scenario with what follows from it and from the files that it reads: worked out once, and handed on."""

from collections.abc import Mapping
from functools import cached_property
from typing import Any

from edgefl.config.yaml_source import write
from edgefl.run_directory.results import Described
from edgefl.scenario.data_loading import Loaded
from edgefl.scenario.identity import Identity, LearningIdentity, identity, learning_identity
from edgefl.scenario.scenario import Scenario, written
from edgefl.scenario.world import World


class Prepared:
    """A scenario, its text, its data's checksums and its identity, each worked out when it is first asked for.

    Args:
        load: reads the data sets.
        learner: from outside, or what makes it; None: there is none.
    """

    def __init__(self, scenario: Scenario, load: Loaded, learner: Any = None) -> None:
        self.scenario, self._load, self._learner = scenario, load, learner

    @cached_property
    def values(self) -> dict[str, Any]:
        """The complete scenario as plain values, defaults filled in."""
        return written(self.scenario)

    @cached_property
    def described(self) -> Described:
        """What a run directory keeps of it."""
        one = self.scenario
        parts = {name: write(written(own)) for name, own in one.by_federation.items() if name}
        return Described(one.name, one.seed, one.record, write(self.values), parts)

    @cached_property
    def checksums(self) -> Mapping[str, str]:
        """Dotted key of each data set that a federation trains on -> the checksum of its samples.

        Raises:
            EdgeflError: one cannot be had.
        """
        return {
            ".".join(self.scenario.place_in(name, "learning", "dataset")): self._load.checksum(
                one.learning.dataset
            )
            for name, one in self.scenario.by_federation.items()
            if one.learning is not None
        }

    @cached_property
    def identity(self) -> Identity:
        """What its run is.

        Raises:
            EdgeflError: a file that it reads is not there.
        """
        return identity(self.values, self.checksums, self._learner)

    def told(self, world: World) -> LearningIdentity | None:
        """What decides the answers of its learners; None: nothing is trained, or nobody else asks the same.

        Args:
            world: of the scenario.
        """
        return learning_identity(world, self.values.get("learning", {}), self.checksums)
