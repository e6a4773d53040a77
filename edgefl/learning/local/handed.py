"""Tensors that an algorithm's methods receive by name, with an error for unknown names."""

from collections.abc import Mapping

from torch import Tensor

from edgefl.config import registry
from edgefl.errors import EdgeflError
from edgefl.learning.algorithms import Algorithm

# kinds of tensors, and how an algorithm adds a name to each kind
OWN = "vectors of its devices: name it in device_vectors"
STATE = "values of the server's state: return it from init_state, join and aggregate"
NOTES = "notes of the round: return it from receive or upload"
REMEMBERED = "notes that its devices remember: name it in remembers"


class Handed(dict[str, Tensor]):
    """Tensors by name; looking up an unknown name raises an error about the algorithm instead of a KeyError.

    Args:
        among: the kind of these tensors, a constant of this module.
    """

    def __init__(self, algorithm: Algorithm, among: str, tensors: Mapping[str, Tensor]) -> None:
        super().__init__(tensors)
        self._algorithm, self._among = registry.name_of("algorithms", algorithm), among

    def check(self, name: str) -> None:
        """Raise an EdgeflError if a name is unknown, as a look-up would."""
        if name not in self:
            self.__missing__(name)

    def __missing__(self, name: str) -> Tensor:
        where, _, remedy = self._among.partition(": ")
        known = f"only {', '.join(self)}" if self else "nothing"
        raise EdgeflError(
            f"{self._algorithm} reads {name!r}, which is not among the {where} ({known}); {remedy} (a subclass must "
            "also include the values of the algorithm that it extends)",
            ("learning", "algorithm"),
        )
