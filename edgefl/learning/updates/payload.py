"""The size of a transfer of models."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Payload:
    """The rule for the size of a transfer, in bits.

    bits_per_parameter: how many bits each number of a transfer has.
    exchanged: whether all vectors that the algorithm exchanges count, or only one model, as in the journal paper.
    """

    bits_per_parameter: int = 32
    exchanged: bool = True

    def bits(self, parameters: int, statistics: int, vectors: int) -> int:
        """Return the bits of a transfer of vectors with M parameters each, and Q statistics; 0 without vectors."""
        if not vectors:
            return 0
        return self.bits_per_parameter * ((vectors if self.exchanged else 1) * parameters + statistics)
