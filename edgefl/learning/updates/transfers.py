"""What travels between server and devices in a round: here whole models, as the algorithm makes them."""

from collections.abc import Mapping, Sequence

import numpy as np
from torch import Tensor

from edgefl.learning.algorithms import Algorithm, Received, Sent, ServerState
from edgefl.learning.chance import RoundChance
from edgefl.learning.modules.parameters import ModelLayout
from edgefl.learning.updates.payload import Payload
from edgefl.learning.updates.rows import numbers


class Transfers:
    """Models that travel whole; base of what sends others in their place.

    Args:
        layout: of a model with its statistics, which travel whole in any case.
        payload: bits of a transfer.

    Attributes:
        changes_upload: whether the server decodes something else than devices send.
    """

    changes_upload = False

    def __init__(self, algorithm: Algorithm, layout: ModelLayout, payload: Payload) -> None:
        self._algorithm, self._layout, self._payload = algorithm, layout, payload

    def down(
        self, received: Received, ids: Sequence[int], chance: RoundChance
    ) -> tuple[Received, Tensor | None]:
        """Return what devices have of the models sent to them, and the models that were meant; None: the same."""
        return received, None

    def up(
        self, sent: Sent, start: Tensor, ids: Sequence[int], chance: RoundChance
    ) -> tuple[Sent, Mapping[str, Tensor]]:
        """Return what the server has of what devices send, which had received `start`, and what they remember of it.

        They remember it, [k, n] by name, if it is aggregated: see `keep`.
        """
        return sent, {}

    def keep(self, ids: Sequence[int], memory: Mapping[str, Tensor], start: Tensor) -> None:
        """Let these devices, whose update is aggregated, keep their memory of `up`, and what they received."""

    def down_bits(self, received: Received, count: int) -> np.ndarray:
        """Return [count] the bits that devices receive."""
        return self._bits(numbers(received.vectors, self._algorithm.vectors_down, count), received.bits)

    def up_bits(self, sent: Sent | None, count: int) -> np.ndarray:
        """Return [count] the bits that devices send; None: their local models."""
        return self._bits(np.full(count, self._algorithm.vectors_up), sent.bits if sent else None)

    def expected_bits(self, like: Tensor, state: ServerState, chance: RoundChance) -> tuple[int, int]:
        """Return the bits that a device would receive and send in its first round.

        Args:
            like: [M] a model.
            state: the server's.
        """
        down = self._bits(np.array([self._algorithm.expected_down(state)]), None)
        up = self._bits(np.array([self._algorithm.vectors_up]), self._expected_up(like, chance))
        return int(down[0]), int(up[0])

    def _expected_up(self, like: Tensor, chance: RoundChance) -> Tensor | None:
        """Return [1] the bits of an upload as far as they depend on its numbers; None: they do not."""
        return None

    def _bits(self, vectors: np.ndarray, stated: Tensor | None) -> np.ndarray:
        layout = self._layout
        if stated is None:
            sizes = layout.parameters.size, layout.statistics.size
            return np.array([self._payload.bits(*sizes, int(many)) for many in vectors], dtype=np.int64)
        statistics_bits = self._payload.bits_per_parameter * layout.statistics.size
        return stated.cpu().numpy().astype(np.int64) + statistics_bits


class Release:
    """Updates that are let out as they are, without an account; base of what limits them and keeps one.

    Attributes:
        changes_upload: whether `limited` changes rows.
    """

    changes_upload = False

    def limited(self, rows: Tensor, start: Tensor, ids: Sequence[int], chance: RoundChance) -> Tensor:
        """Return what these devices, which had received `start`, let out of what they would send [k, M]."""
        return rows

    def averaged(self, rows: Tensor, shares: Tensor, chance: RoundChance) -> Tensor:
        """Return updates [K, M] whose mean by shares [K] is what the server lets out."""
        return rows

    def columns(
        self, ids: Sequence[int], trained: np.ndarray
    ) -> tuple[Mapping[str, np.ndarray], Mapping[str, str]]:
        """Return the account's columns if these updates are let out, and the stage after which each column holds.

        Args:
            trained: [k] bool, whether a device did a local step.

        Returns:
            [k] values by name, and stage by name; a column without values is told by `uploaded`.
        """
        return {}, {}

    def uploaded(self, ids: Sequence[int], samples: Mapping[int, int]) -> Mapping[str, tuple[float, ...]]:
        """Charge an upload of each of these devices, in this order; return the account's columns then.

        Args:
            ids: a device may be named more than once.
            samples: that each holds; without any, what it sends tells nothing.
        """
        return {}

    def keep(self, ids: Sequence[int]) -> None:
        """Charge updates of these devices that are aggregated."""
