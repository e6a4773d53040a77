"""Transfer models between server and devices in a round, whole or encoded on the uplink or downlink."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from numbers import Integral

import numpy as np
import torch
from torch import Tensor

from edgefl.config import registry
from edgefl.config.answers import must_be_shaped, wrong
from edgefl.errors import EdgeflError, about
from edgefl.learning.algorithms import Algorithm, Received, Sent, ServerState
from edgefl.learning.chance import Chance, RoundChance
from edgefl.learning.codecs import Codec, Coded, Sizes, fed_back
from edgefl.learning.modules.parameters import ModelLayout
from edgefl.learning.settings import CostSettings, LearningSettings
from edgefl.learning.updates.device_states import DeviceStates
from edgefl.learning.updates.rows import blocks

HELD = "model received"  # name of the last model that a device received in a round with an aggregated update


class Transfers:
    """Encode transfers of models, and store the vectors that devices keep for codecs.

    An algorithm's extra vectors, such as SCAFFOLD's control variates, and statistics are sent unencoded.

    Args:
        layout: layout of a model with its statistics.
        cost: sizes of numbers and of transfers.
        devices: storage of the codecs' memory.
        uplink, downlink: codec of each direction; None: models are sent unencoded in this direction.

    Attributes:
        changes_upload: whether the decoded uploads differ from the uploads before coding.

    Raises:
        EdgeflError: a codec with error feedback states no bound on its error, or no damping factor can bound it.
    """

    def __init__(
        self,
        algorithm: Algorithm,
        layout: ModelLayout,
        cost: CostSettings,
        devices: DeviceStates,
        uplink: Codec | None = None,
        downlink: Codec | None = None,
    ) -> None:
        self._algorithm, self._layout, self._cost, self._devices = algorithm, layout, cost, devices
        self._uplink, self._downlink = uplink, downlink
        self._sizes = Sizes(tuple(map(tuple, layout.parameters.shapes)), cost.bits_per_parameter)
        self.changes_upload = uplink is not None
        for one in fed_back(uplink, downlink, differences=algorithm.sends_differences):
            one.check(self._sizes)

    @classmethod
    def of(cls, settings: LearningSettings, layout: ModelLayout, devices: DeviceStates) -> "Transfers":
        """Return the transfers that a scenario specifies."""
        codecs = settings.uplink_codec, settings.downlink_codec
        return cls(settings.algorithm, layout, settings.cost, devices, *codecs)

    def down(
        self, received: Received, ids: Sequence[int], chance: RoundChance
    ) -> tuple[Received, Tensor | None]:
        """Return the models as devices decode them, and the original models (None without a downlink codec)."""
        codec, count = self._downlink, self._sizes.count
        if codec is None:
            return received, None
        if received.bits is not None:
            raise self._counts_itself("downlink_codec")
        whole = received.start.expand(len(ids), -1)
        start, bits = whole.clone(), torch.full((len(ids),), self._sizes.bits * count, device=whole.device)
        held = [k for k, there in enumerate(self._devices.has(HELD, ids)) if there]
        for begin, end in blocks(len(held), whole):
            some = held[begin:end]
            those = [ids[k] for k in some]
            last = self._devices.rows(HELD, those, whole[0])
            rng = chance.of_devices("downlink codec", those)
            coded = self._difference("downlink_codec", codec, whole[some] - last, rng)
            start[some], bits[some] = _decoded(coded.rows, last, whole[some]), coded.bits
        meant = received.start
        if meant.dim() == 1 and torch.equal(start, whole):
            start = meant  # store one model, since all devices receive the same model
        vectors = self._algorithm.vectors_down if received.vectors is None else received.vectors
        return replace(received, start=start, bits=bits + self._others(vectors)), meant

    def up(
        self, sent: Sent, start: Tensor, ids: Sequence[int], chance: RoundChance
    ) -> tuple[Sent, Mapping[str, Tensor]]:
        """Return the uploads as the server decodes them, and the codec's new memory; devices received `start`.

        Devices store this memory, [k, n] by name, if the update is aggregated: see `keep`.
        """
        codec = self._uplink
        if codec is None:
            return sent, {}
        if sent.bits is not None:
            raise self._counts_itself("uplink_codec")
        rng, change = chance.of_devices("uplink codec", ids), sent.rows - start
        if self._algorithm.sends_differences:
            coded = self._difference("uplink_codec", codec, change, rng)
        else:
            memory = {
                name: self._devices.rows(_kept(name), ids, change.new_zeros(size))
                for name, size in self._memory("uplink_codec", codec).items()
            }
            coded = self._encoded("uplink_codec", codec, change, memory, rng)
        rows = _decoded(coded.rows, start.expand_as(sent.rows), sent.rows)
        bits = coded.bits + self._others(self._algorithm.vectors_up)
        return Sent(rows, sent.notes, bits), coded.memory

    def keep(self, ids: Sequence[int], memory: Mapping[str, Tensor], start: Tensor) -> None:
        """Store the codec's memory from `up` and the received models, for devices with aggregated updates."""
        for name, rows in memory.items():
            self._devices.keep(_kept(name), ids, rows)
        if self._downlink is not None:
            self._devices.keep(HELD, ids, start.expand(len(ids), -1))

    def down_bits(self, received: Received, count: int) -> np.ndarray:
        """Return the number of bits that each device receives, [count]."""
        stated, usual = received.vectors, self._algorithm.vectors_down
        return self._bits(np.full(count, usual) if stated is None else stated.cpu().numpy(), received.bits)

    def up_bits(self, sent: Sent | None, count: int) -> np.ndarray:
        """Return the number of bits that each device sends, [count]; `sent` is None if devices send local models."""
        return self._bits(np.full(count, self._algorithm.vectors_up), sent.bits if sent else None)

    def expected_bits(self, like: Tensor, state: ServerState, chance: RoundChance) -> tuple[int, int]:
        """Return the bits that a device would receive and send in its first round.

        Args:
            like: any model [M]; its values do not matter.
            state: the server's state.
        """
        vectors = self._algorithm.expected_down(state)
        if not isinstance(vectors, Integral):
            wanted = "the number of vectors that a device receives, an integer"
            raise wrong(self._algorithm.expected_down, vectors, wanted, "learning", "algorithm")
        down = self._bits(np.array([vectors]), None)
        up = self._bits(np.array([self._algorithm.vectors_up]), self._expected_up(like, chance))
        return int(down[0]), int(up[0])

    def _expected_up(self, like: Tensor, chance: RoundChance) -> Tensor | None:
        """Return the bits [1] of a normally distributed change; None without a codec: bits are then constant."""
        codec = self._uplink
        if codec is None:
            return None
        change = chance.of_devices("expected change", [0]).normal(self._sizes.count).to(like.dtype)
        remembered = self._memory("uplink_codec", codec)
        memory = {name: like.new_zeros(1, size) for name, size in remembered.items()}
        coded = self._encoded("uplink_codec", codec, change, memory, chance.of_devices("expected bits", [0]))
        return coded.bits + self._others(self._algorithm.vectors_up)

    def _bits(self, vectors: np.ndarray, stated: Tensor | None) -> np.ndarray:
        layout = self._layout
        if stated is None:
            sizes = layout.parameters.size, layout.statistics.size
            return np.array([self._cost.bits(*sizes, int(many)) for many in vectors], dtype=np.int64)
        statistics_bits = self._cost.bits_per_parameter * layout.statistics.size
        return stated.cpu().numpy().astype(np.int64) + statistics_bits

    def _others(self, vectors: Tensor | int) -> Tensor | int:
        """Return the bits of the vectors that are sent unencoded besides the model; 0 if the payload ignores them."""
        exchanged = self._cost.payload == "exchanged"
        return (vectors - 1) * self._sizes.bits * self._sizes.count if exchanged else 0

    def _difference(self, key: str, codec: Codec, change: Tensor, rng: Chance) -> Coded:
        """Encode differences from the receiver's state; the next difference includes the coding error."""
        memory = {
            name: change.new_zeros(len(change), size) for name, size in self._memory(key, codec).items()
        }
        coded = self._encoded(key, codec, change, memory, rng)
        # a codec with a memory has already damped its decoded changes
        with about("learning", key):
            rows = coded.rows if memory else codec.damped(coded.rows, change, self._sizes)
        return Coded(rows, coded.bits)

    def _encoded(
        self, key: str, codec: Codec, change: Tensor, memory: dict[str, Tensor], rng: Chance
    ) -> Coded:
        with about("learning", key):
            coded = codec.encode(change, memory, rng, self._sizes)
            check_coded(codec.encode, coded, change, memory)
        return coded

    def _memory(self, key: str, codec: Codec) -> Mapping[str, int]:
        sizes = codec.memory(self._sizes)
        if not isinstance(sizes, Mapping) or not all(isinstance(size, Integral) for size in sizes.values()):
            raise wrong(codec.memory, sizes, "a dict of names and lengths", "learning", key)
        return sizes

    def _counts_itself(self, key: str) -> EdgeflError:
        name = registry.name_of("algorithms", self._algorithm)
        return EdgeflError(
            f"{name} counts the bits of its transfers itself: leave the codec out, or choose another algorithm",
            ("learning", key),
        )


def _kept(name: str) -> str:
    return f"uplink codec: {name}"


def _decoded(change: Tensor, base: Tensor, whole: Tensor) -> Tensor:
    """Return base + change, or exactly `whole` where the change from base to `whole` was decoded without error."""
    return torch.where(change == whole - base, whole, base + change)


def check_coded(
    method: Callable[..., Coded], coded: Coded, change: Tensor, memory: Mapping[str, Tensor]
) -> None:
    """Raise an error unless a codec's result has the shapes of the encoded changes and of its memory."""
    if not isinstance(coded, Coded):
        raise wrong(method, coded, "a Coded")
    shape = tuple(change.shape)
    must_be_shaped(method, coded.rows, (shape,), "rows: a row for each device, a tensor", like=change)
    must_be_shaped(method, coded.bits, (shape[:1],), "bits: a tensor with one integer per device")
    if coded.bits.is_floating_point() or bool((coded.bits < 0).any()):
        raise wrong(method, coded.bits, "bits: integers of at least 0")
    if not isinstance(coded.memory, Mapping) or set(coded.memory) != set(memory):
        raise wrong(method, coded.memory, f"memory: the names that memory() returns, {sorted(memory)}")
    for name, rows in coded.memory.items():
        wanted = f"memory {name}: a row for each device,"
        must_be_shaped(method, rows, (tuple(memory[name].shape),), wanted, like=memory[name])
