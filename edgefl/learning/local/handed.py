"""What an algorithm's verbs are handed by name, which says what is missing where one asks for more."""

from collections.abc import Mapping

from torch import Tensor

from edgefl.config import registry
from edgefl.errors import EdgeflError
from edgefl.learning.algorithms import Algorithm

# where a verb may look, and how a name comes to be there
OWN = "own vectors of its devices: name it in device_vectors"
STATE = "values of the server's state: return it from init_state, join and aggregate"
NOTES = "notes of the round: note it in receive or upload"
REMEMBERED = "notes that its devices remember: name it in remembers"


class Handed(dict[str, Tensor]):
    """Tensors by name; a name that is not there is an error about the algorithm, not a KeyError inside a verb.

    Args:
        among: one of the above.
    """

    def __init__(self, algorithm: Algorithm, among: str, tensors: Mapping[str, Tensor]) -> None:
        super().__init__(tensors)
        self._algorithm, self._among = registry.name_of("algorithms", algorithm), among

    def check(self, name: str) -> None:
        """Raises EdgeflError, as asking for it does, if there is nothing of this name."""
        if name not in self:
            self.__missing__(name)

    def __missing__(self, name: str) -> Tensor:
        where, _, remedy = self._among.partition(": ")
        known = f"only {', '.join(self)}" if self else "nothing"
        raise EdgeflError(
            f"{self._algorithm} asks for {name!r} among the {where}, which hold {known}; {remedy} (a class that"
            " extends another algorithm replaces what it sets or overrides, unless it takes that one's too)",
            ("learning", "algorithm"),
        )
