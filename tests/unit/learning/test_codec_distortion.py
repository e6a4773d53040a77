"""What codecs state of their errors: reached by the worst changes, damped where fed back, refused if unstated."""

import math
from typing import Any

import pytest
import torch
from torch import Tensor

from edgefl.config import registry
from edgefl.config.component import build
from edgefl.contract import SessionStart
from edgefl.errors import EdgeflError
from edgefl.learning.chance import Chance, RoundChance
from edgefl.learning.codecs import Codec, Contraction, FeedbackCodec, Sizes, Unbiased
from edgefl.learning.codecs.qsgd import Qsgd
from edgefl.rng import Streams
from tests.unit.learning.federation.test_resume import Cell, settings

M = 64
SIZES = Sizes(((M,),))
DRAWS = 4000
ONE = torch.zeros(M).index_fill(0, torch.tensor([5]), 2.0)
PAIR = ONE.index_fill(0, torch.tensor([9]), -2.0)
EQUAL = torch.full((M,), -0.5)


def among(levels: int) -> Tensor:
    """Return the worst change for the largest magnitude as a norm: 1, and s x = 1 / (u + 1) of all others."""
    u = math.sqrt(1 + (M - 1) / levels**2)
    return torch.full((M,), 1 / (u + 1) / levels).index_fill(0, torch.tensor([0]), 1.0)


def chance(many: int) -> Chance:
    return RoundChance(Streams(7), (1,), torch.device("cpu")).of_devices("codec", range(many))


def made(name: str, **values: Any) -> Codec:
    one = build(registry.get("codecs", name), values)
    assert isinstance(one, Codec)
    return one


# codec, its parameters, what it states for 64 numbers, by hand, and a change that reaches it
WORST: list[tuple[str, dict[str, Any], Unbiased | Contraction, Tensor]] = [
    ("qsgd", {"levels": 2}, Unbiased(8 / 2 - 1), EQUAL),
    ("qsgd", {"levels": 2, "bucket": 16}, Unbiased(4 / 2 - 1), EQUAL),
    ("qsgd", {"levels": 2, "bucket": 10**6}, Unbiased(8 / 2 - 1), EQUAL),
    # 12 / 8: every number halfway between two levels
    ("qsgd", {"levels": 12}, Unbiased(64 / (4 * 12**2)), EQUAL),
    ("qsgd", {"levels": 3, "norm": "max"}, Unbiased((math.sqrt(1 + 63 / 9) - 1) / 2), among(3)),
    ("fedpaq", {"bits": 1}, Unbiased(62 / 2), PAIR),
    ("fedpaq", {"bits": 3}, Unbiased(62 / (2 * 49)), PAIR),
    ("rand_k", {"share": 0.25, "error_feedback": False}, Unbiased(3.0), EQUAL),
    ("rand_k", {"share": 0.25}, Contraction(0.25), EQUAL),
    ("top_k", {"share": 0.25}, Contraction(0.25), EQUAL),
    ("ef21", {"share": 0.25}, Contraction(0.25), EQUAL),
    ("signsgd", {}, Contraction(1 / 64), ONE),
]


@pytest.mark.parametrize(("name", "values", "stated", "change"), WORST)
def test_what_a_codec_states_is_reached_by_the_worst_change(
    name: str, values: dict[str, Any], stated: Unbiased | Contraction, change: Tensor
) -> None:
    """E |C(v) - v|^2 / |v|^2 of the worst v is omega, or 1 - delta, within four standard errors of 4,000 draws."""
    one = made(name, **values)
    assert one.distortion(SIZES) == stated
    memory = {name: torch.zeros(DRAWS, size) for name, size in one.memory(SIZES).items()}
    rows = one.encode(change.expand(DRAWS, -1), memory, chance(DRAWS), SIZES).rows
    errors = (rows - change).double().square().sum(1) / float(change.square().sum())
    bound = stated.omega if isinstance(stated, Unbiased) else 1 - stated.delta
    assert abs(float(errors.mean()) - bound) <= 4 * float(errors.std()) / math.sqrt(DRAWS) + 1e-6


def test_powersgd_states_its_rank_over_the_widest_matrix() -> None:
    """Of 10 x 784 and rank 2: 2 / 784; where all travels whole, 1."""
    assert made("powersgd", rank=2).distortion(Sizes(((10, 784), (10,)))) == Contraction(2 / 784)
    assert made("powersgd", rank=2).distortion(Sizes(((3, 4), (10,)))) == Contraction(1.0)


@pytest.mark.parametrize("name", registry.names("codecs"))
def test_feedback_divides_what_is_unbiased_by_one_and_its_omega_and_nothing_else(name: str) -> None:
    """The message is the same, the residual what the damped rows leave of the change."""
    cls = registry.get("codecs", name)
    if not issubclass(cls, FeedbackCodec):
        return
    change = torch.randn(3, M, generator=torch.Generator().manual_seed(1))
    one = made(name, error_feedback=True)
    rows, bits = one.compress(change, chance(3), SIZES)  # type: ignore[attr-defined]
    coded = one.encode(change, {"residual": torch.zeros(3, M)}, chance(3), SIZES)
    stated = one.distortion(SIZES)
    damping = 1 / (1 + stated.omega) if isinstance(stated, Unbiased) else 1.0
    assert torch.equal(coded.rows, rows * damping)
    assert torch.equal(coded.bits, bits)
    assert torch.equal(coded.memory["residual"], change - coded.rows)


def test_a_codec_is_damped_once_on_the_way_down_with_feedback_or_without() -> None:
    """The second model that a device receives is the first and what QSGD decodes of the change, over 1 + omega."""
    starts = []
    for feedback in (False, True):
        codec = {"name": "qsgd", "levels": 2, "error_feedback": feedback}
        one = Cell(settings("fedavg", "previous", downlink_codec=codec)).one
        stage = next(one.session(SessionStart(1, (0, 1, 2), longest=2)))
        stage.train([0, 1, 2], 1)
        first = one.federation.model.model.clone()
        stage.aggregate([0, 1, 2])
        wanted = one.federation.model.model - first
        stage.train([0, 1, 2], 2)
        starts.append(one.federation.model.waiting[0].round.start - first)
    omega = math.sqrt(512) / 2 - 1
    assert torch.equal(*starts)
    # decoded are multiples of the norm of each bucket / 2
    for bucket in (slice(0, 512), slice(512, 650)):
        levels = starts[0][:, bucket] * (1 + omega) * 2 / wanted[bucket].norm()
        assert (levels - levels.round()).abs().max() < 1e-3
        assert levels.abs().max() > 0.9


class Silent(Qsgd):
    """States nothing."""

    distortion = Codec.distortion


class Boundless(Qsgd):
    """States what no damping bounds."""

    def distortion(self, sizes: Sizes) -> Unbiased:
        return Unbiased(math.inf)


@pytest.mark.parametrize(
    ("way", "feedback", "refused"),
    [
        ("uplink_codec", True, True),
        ("uplink_codec", False, False),
        ("downlink_codec", True, True),
        ("downlink_codec", False, True),
    ],
)
@pytest.mark.parametrize(
    ("cls", "words"), [(Silent, "does not state how far"), (Boundless, "no damping bounds")]
)
def test_what_states_no_bound_is_refused_where_its_errors_are_fed_back(
    way: str, feedback: bool, refused: bool, cls: type[Qsgd], words: str
) -> None:
    how = settings("fedavg", "previous").model_copy(update={way: cls(error_feedback=feedback)})
    if not refused:
        next(Cell(how).one.session(SessionStart(1, (0, 1), longest=1))).train([0, 1], 1)
        return
    with pytest.raises(EdgeflError, match=words) as told:
        Cell(how)
    assert told.value.place == ("learning", way)
