"""Check the contract of codecs."""

from collections.abc import Mapping

import numpy as np
import torch
from torch import Tensor

from edgefl.learning.chance import RoundChance
from edgefl.learning.codecs import Codec, Coded, FeedbackCodec, Sizes
from edgefl.rng import Streams
from edgefl.testing.conformance import must

SIZES = Sizes(((3, 4), (3,), (2, 3, 2)), bits=32)
DEVICES = [4, 7, 9]
ROUNDS = 5
ROUNDING = 1e-5  # of some sums of float32 numbers of order 1


def codecs(codec: Codec) -> None:
    """Check shapes and bits, that each device is coded by itself, and that nothing sent with feedback is lost."""
    names = codec.memory(SIZES)
    must(all(size > 0 for size in names.values()), "memory() names vectors and how long they are, from 1 on")
    together = _rounds(codec, DEVICES)
    for place, device in enumerate(DEVICES):
        alone = _rounds(codec, [device])
        must(
            all(_same(one, _row(many, place)) for one, many in zip(alone, together, strict=True)),
            "encode() codes a device otherwise when others are beside it: rows have to be independent, and random"
            " numbers come from `rng`",
        )
    nothing = torch.zeros(len(DEVICES), SIZES.count)
    coded = _encode(codec, nothing, _zeros(names, len(DEVICES)), DEVICES, 0)
    must(
        bool(torch.isfinite(coded.rows).all()) and float(coded.rows.abs().max()) == 0,
        "encode() makes something of a change that is 0",
    )
    if isinstance(codec, FeedbackCodec) and codec.error_feedback:
        sent = torch.stack([one.rows for one in together]).sum(0)
        wanted = torch.stack([_change(round_, DEVICES) for round_ in range(ROUNDS)]).sum(0)
        left = sum(together[-1].memory.values())
        must(
            torch.allclose(sent + left, wanted, atol=ROUNDING * ROUNDS),
            "all that was sent and the residual are not all changes: the residual is what compress() was given, less"
            " what it gave",
        )


def _change(round_: int, devices: list[int]) -> Tensor:
    """Return changes of these devices in a round, some numbers of which are 0."""
    rows = [np.random.default_rng([round_, id_]).standard_normal(SIZES.count) for id_ in devices]
    changes = torch.tensor(np.stack(rows), dtype=torch.float32)
    changes[:, 1::5] = 0.0
    return changes


def _rounds(codec: Codec, devices: list[int]) -> list[Coded]:
    """Code some rounds of these devices, each with what the one before left."""
    memory, coded = _zeros(codec.memory(SIZES), len(devices)), []
    for round_ in range(ROUNDS):
        coded.append(_encode(codec, _change(round_, devices), memory, devices, round_))
        memory = dict(coded[-1].memory)
    return coded


def _zeros(names: Mapping[str, int], many: int) -> dict[str, Tensor]:
    return {name: torch.zeros(many, size) for name, size in names.items()}


def _encode(
    codec: Codec, change: Tensor, memory: dict[str, Tensor], devices: list[int], round_: int
) -> Coded:
    chance = RoundChance(Streams(3), (1, "train", round_), torch.device("cpu"))
    lent = change.clone(), {name: rows.clone() for name, rows in memory.items()}
    coded = codec.encode(change, memory, chance.of_devices("codec", devices), SIZES)
    must(
        coded.rows.shape == change.shape,
        f"encode() decodes rows of shape {tuple(coded.rows.shape)}: one for each device, [k, M]",
    )
    must(
        coded.bits.shape == (len(change),)
        and not coded.bits.is_floating_point()
        and int(coded.bits.min()) >= 0,
        "encode() counts bits as integers, one for each device, [k]",
    )
    must(
        {name: tuple(rows.shape) for name, rows in coded.memory.items()}
        == {name: (len(change), size) for name, size in codec.memory(SIZES).items()},
        f"encode() gave a memory of {sorted(coded.memory)}: [k, n] for what memory() names",
    )
    must(
        torch.equal(lent[0], change) and all(torch.equal(lent[1][name], memory[name]) for name in memory),
        "encode() changed a tensor in place that it was only lent: make new ones",
    )
    return coded


def _row(coded: Coded, place: int) -> Coded:
    one = slice(place, place + 1)
    memory = {name: rows[one] for name, rows in coded.memory.items()}
    return Coded(coded.rows[one], coded.bits[one], memory)


def _same(one: Coded, other: Coded) -> bool:
    return (
        torch.equal(one.rows, other.rows)
        and torch.equal(one.bits, other.bits)
        and all(torch.equal(one.memory[name], other.memory[name]) for name in one.memory)
    )
