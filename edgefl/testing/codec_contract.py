"""Check the contract of codecs."""

import copy
from collections.abc import Mapping

import numpy as np
import torch
from torch import Tensor

from edgefl.learning.chance import RoundChance
from edgefl.learning.codecs import Codec, Coded, FeedbackCodec, Sizes, Unbiased
from edgefl.learning.updates.transfers import check_coded
from edgefl.rng import Streams
from edgefl.testing.conformance import must, same

SIZES = Sizes(((3, 4), (3,), (2, 3, 2)), bits=32)
DEVICES = [4, 7, 9]
ROUNDS = 5
ROUNDING = 1e-5  # tolerance of sums of a few float32 numbers of order 1
LARGER = Sizes(((8, 12), (8,)), bits=32)
DRAWS = 1000
# the mean of DRAWS draws exceeds its expectation by this many standard errors only once in 300,000 checks
STANDARD_ERRORS = 4.5


def codecs(codec: Codec) -> None:
    """Check a codec's shapes, bits and distortion, that devices are independent, and that feedback loses nothing."""
    names = codec.memory(SIZES)
    must(
        all(size > 0 for size in names.values()), "memory() must return name -> length of vectors, at least 1"
    )
    together = _rounds(codec, DEVICES)
    for place, device in enumerate(DEVICES):
        alone = _rounds(codec, [device])
        must(
            all(same(one, _row(many, place)) for one, many in zip(alone, together, strict=True)),
            "encode() encodes a device differently when other devices are encoded with it: keep rows independent, "
            "and draw random numbers from `rng`",
        )
    nothing = torch.zeros(len(DEVICES), SIZES.count)
    coded = _encode(codec, nothing, _zeros(names, len(DEVICES)), DEVICES, 0)
    must(
        bool(torch.isfinite(coded.rows).all()) and float(coded.rows.abs().max()) == 0,
        "encode() must return zeros for a change of zero",
    )
    if isinstance(codec, FeedbackCodec) and codec.error_feedback:
        sent = torch.stack([one.rows for one in together]).sum(0)
        wanted = torch.stack([_change(round_, DEVICES) for round_ in range(ROUNDS)]).sum(0)
        left = sum(together[-1].memory.values())
        must(
            torch.allclose(sent + left, wanted, atol=ROUNDING * ROUNDS),
            "messages and residual do not add up to the changes: the residual must be the input of compress() minus"
            " its output, damped by its distortion",
        )
    _check_distortion(codec)


def _check_distortion(codec: Codec) -> None:
    """Compare a codec's stated distortion with the codec's mean error over many draws, for several changes."""
    if type(codec).distortion is Codec.distortion:
        must(False, "distortion() is missing: return Unbiased(omega) or Contraction(delta)")
    names, distortion = codec.memory(LARGER), codec.distortion(LARGER)
    plain = isinstance(distortion, Unbiased) and not names
    if isinstance(distortion, Unbiased):
        must(
            0 <= distortion.omega < float("inf"),
            f"distortion() is {distortion}: omega must be finite and at least 0",
        )
        # if the codec has a memory, its decoded changes are damped, and so is their error
        bound = distortion.omega if plain else distortion.omega * distortion.damping
    else:
        must(0 < distortion.delta <= 1, f"distortion() is {distortion}: delta must be above 0 and at most 1")
        bound = 1 - distortion.delta
    for kind, change in _kinds().items():
        devices = list(range(DRAWS))
        coded = _encode(codec, change.expand(DRAWS, -1), _zeros(names, DRAWS), devices, 0, LARGER)
        left, square = (coded.rows - change).double(), float(change.double().square().sum())
        errors = left.square().sum(1) / square
        error, margin = float(errors.mean()), STANDARD_ERRORS * float(errors.std()) / DRAWS**0.5 + ROUNDING
        must(
            error <= bound + margin,
            f"for {kind} the mean squared error is {error:.4g} of the squared norm, but distortion() "
            f"{distortion} allows at most {bound:.4g}",
        )
        if plain:
            # the mean error's square is on average 1 / DRAWS of the mean squared error; if errors are normal, its
            # component in a given direction exceeds 25 times this average with a probability of about 1e-6
            bias = float(left.mean(0).square().sum()) / square
            must(
                bias <= 25 * error / DRAWS + ROUNDING**2,
                f"for {kind} the mean decoded change differs from the change: distortion() is not {distortion}",
            )


def _kinds() -> dict[str, Tensor]:
    """Return example changes [M] by description, including the worst cases of known codecs."""
    count = LARGER.count
    numbers = torch.from_numpy(np.random.default_rng(5).standard_normal(count)).float()
    one, pair, among = torch.zeros(count), torch.zeros(count), torch.full((count,), 0.1)
    one[3], pair[1], pair[7], among[5] = 1.0, 1.0, -1.0, 1.0
    steep = 0.8 ** torch.arange(count, dtype=torch.float32)
    return {
        "normal numbers": numbers,
        "one number and zeros": one,
        "a number, its negative and zeros": pair,
        "equal numbers": torch.ones(count),
        "one large number among small ones": among,
        "numbers that decrease by a fifth at each step": steep,
        "orthogonal rows": torch.cat([torch.eye(8, 12).reshape(-1), torch.zeros(8)]),
    }


def _change(round_: int, devices: list[int]) -> Tensor:
    """Return random changes [k, M] of k devices in a round; every fifth number is 0."""
    rows = [np.random.default_rng([round_, id_]).standard_normal(SIZES.count) for id_ in devices]
    changes = torch.tensor(np.stack(rows), dtype=torch.float32)
    changes[:, 1::5] = 0.0
    return changes


def _rounds(codec: Codec, devices: list[int]) -> list[Coded]:
    """Encode several rounds of the given devices' changes, each with the memory from the previous round."""
    memory, coded = _zeros(codec.memory(SIZES), len(devices)), []
    for round_ in range(ROUNDS):
        coded.append(_encode(codec, _change(round_, devices), memory, devices, round_))
        memory = dict(coded[-1].memory)
    return coded


def _zeros(names: Mapping[str, int], many: int) -> dict[str, Tensor]:
    return {name: torch.zeros(many, size) for name, size in names.items()}


def _encode(
    codec: Codec,
    change: Tensor,
    memory: dict[str, Tensor],
    devices: list[int],
    round_: int,
    sizes: Sizes = SIZES,
) -> Coded:
    chance = RoundChance(Streams(3), (1, "train", round_), torch.device("cpu"))
    lent = copy.deepcopy((change, memory))
    coded = codec.encode(change, memory, chance.of_devices("codec", devices), sizes)
    check_coded(codec.encode, coded, change, memory)
    must(
        {name: tuple(rows.shape) for name, rows in coded.memory.items()}
        == {name: (len(change), size) for name, size in codec.memory(sizes).items()},
        f"encode() returned a memory of {sorted(coded.memory)}: return [k, n] for each name in memory()",
    )
    must(
        same(lent, (change, memory)),
        "encode() modified an argument in place: make new tensors",
    )
    return coded


def _row(coded: Coded, place: int) -> Coded:
    one = slice(place, place + 1)
    memory = {name: rows[one] for name, rows in coded.memory.items()}
    return Coded(coded.rows[one], coded.bits[one], memory)
