"""Test codecs' error bounds: the worst change reaches them, and error feedback requires them for its damping."""

import math
from typing import Any

import pytest
import torch
from torch import Tensor

from edgefl.config import registry
from edgefl.contract import SessionStart
from edgefl.learning.chance import Chance
from edgefl.learning.codecs import Codec, Contraction, FeedbackCodec, Sizes, Unbiased
from edgefl.learning.codecs.qsgd import Qsgd
from edgefl.scenario.scenario import Scenario
from edgefl.testing.cell import within
from tests.refusals import refused_at
from tests.tables import sections
from tests.unit.learning.federation.test_resume import Cell, settings
from tests.unit.learning.test_codecs import codec, fresh, streams

M = 64
SIZES = Sizes(((M,),))
DRAWS = 4000
ONE = torch.zeros(M).index_fill(0, torch.tensor([5]), 2.0)
PAIR = ONE.index_fill(0, torch.tensor([9]), -2.0)
EQUAL = torch.full((M,), -0.5)


def among(levels: int) -> Tensor:
    """Return the worst change for the maximum norm: one number is 1, and all other numbers have s x = 1 / (u + 1)."""
    u = math.sqrt(1 + (M - 1) / levels**2)
    return torch.full((M,), 1 / (u + 1) / levels).index_fill(0, torch.tensor([0]), 1.0)


# codec, its parameters, its distortion for 64 values by hand, and a change that reaches this distortion
WORST: list[tuple[str, dict[str, Any], Unbiased | Contraction, Tensor]] = [
    ("qsgd", {"levels": 2}, Unbiased(8 / 2 - 1), EQUAL),
    ("qsgd", {"levels": 2, "bucket": 16}, Unbiased(4 / 2 - 1), EQUAL),
    ("qsgd", {"levels": 2, "bucket": 10**6}, Unbiased(8 / 2 - 1), EQUAL),
    # as 12 / 8 = 1.5, every number is halfway between two levels
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
    """For the worst v, E |C(v) - v|^2 / |v|^2 is omega or 1 - delta, within four standard errors of 4,000 draws."""
    one = codec(name, **values)
    assert one.distortion(SIZES) == stated
    rows = one.encode(change.expand(DRAWS, -1), fresh(one, DRAWS, SIZES), streams(DRAWS), SIZES).rows
    errors = (rows - change).double().square().sum(1) / float(change.square().sum())
    bound = stated.omega if isinstance(stated, Unbiased) else 1 - stated.delta
    assert abs(float(errors.mean()) - bound) <= 4 * float(errors.std()) / math.sqrt(DRAWS) + 1e-6


def test_powersgd_states_its_rank_over_the_widest_matrix() -> None:
    """Rank 2 of a 10 x 784 matrix has delta = 2 / 784; if all tensors are sent whole, delta is 1."""
    assert codec("powersgd", rank=2).distortion(Sizes(((10, 784), (10,)))) == Contraction(2 / 784)
    assert codec("powersgd", rank=2).distortion(Sizes(((3, 4), (10,)))) == Contraction(1.0)


@pytest.mark.parametrize("name", registry.names("codecs"))
def test_feedback_divides_what_is_unbiased_by_one_and_its_omega_and_nothing_else(name: str) -> None:
    """Feedback damps rows, not bits, and stores the rest; QSGD and FedPAQ damp by the change's variance."""
    cls = registry.get("codecs", name)
    if not issubclass(cls, FeedbackCodec):
        return
    change = torch.randn(3, M, generator=torch.Generator().manual_seed(1))
    one = codec(name, error_feedback=True)
    rows, bits = one.compress(change, streams(3), SIZES)
    coded = one.encode(change, {"residual": torch.zeros(3, M)}, streams(3), SIZES)
    stated = one.distortion(SIZES)
    damping = 1 / (1 + stated.omega) if isinstance(stated, Unbiased) else 1.0
    known = one.damping(change, SIZES)
    assert torch.equal(coded.rows, rows * known)
    assert (torch.as_tensor(known) >= damping).all()
    assert name in ("qsgd", "fedpaq") or known == damping
    assert torch.equal(coded.bits, bits)
    assert torch.equal(coded.memory["residual"], change - coded.rows)


class Tripled(FeedbackCodec):
    """An unbiased codec with omega = 2: each number is tripled with probability 1/3, and otherwise 0."""

    def compress(self, wanted: Tensor, rng: Chance, sizes: Sizes) -> tuple[Tensor, Tensor]:
        rows = 3 * wanted * (rng.uniform(wanted.shape[1]) < 1 / 3)
        return rows, wanted.new_full((len(wanted),), 1).long()

    def distortion(self, sizes: Sizes) -> Unbiased:
        return Unbiased(2.0)


def test_a_codec_that_states_an_omega_divides_by_one_plus_omega() -> None:
    """Damping by 1/3 makes the residual's mean square omega / (1 + omega) = 2/3 of the change's, instead of 2."""
    change = torch.ones(DRAWS, M)
    coded = Tripled().encode(change, {"residual": torch.zeros(DRAWS, M)}, streams(DRAWS), SIZES)
    left = coded.memory["residual"].square().mean().item()
    # a residual's square is 1 with probability 2/3 and otherwise 0
    assert left == pytest.approx(2 / 3, abs=4 * math.sqrt(2 / 9 / (DRAWS * M)))


def test_fedpaq_is_damped_by_the_variance_of_the_change_at_hand() -> None:
    """With steps of 1, the values 0.5 and 2.25 have variances 0.25 and 0.1875; the change's square is 14.3125.

    Zeros have no variance, and the worst change is damped by the codec's distortion.
    """
    one = codec("fedpaq", bits=2)
    change = torch.tensor([[0.0, 3.0, 0.5, 2.25], [0.0, 0.0, 0.0, 0.0]])
    by = one.damping(change, Sizes(((4,),)))
    assert by.tolist() == [[pytest.approx(14.3125 / (14.3125 + 0.4375))], [1.0]]
    worst = codec("fedpaq", bits=3)
    assert worst.damping(PAIR.unsqueeze(0), SIZES).item() == pytest.approx(worst.distortion(SIZES).damping)


def test_fedpaq_of_many_numbers_is_hardly_damped() -> None:
    """For a million normal numbers in 8 bits, whose range of about 10 has 255 steps, the variance is step^2 / 6."""
    change = torch.randn(1, 10**6, generator=torch.Generator().manual_seed(3))
    one = codec("fedpaq")
    by = float(one.damping(change, Sizes(((10**6,),))))
    step = float(change.max() - change.min()) / 255
    assert 1 / by - 1 == pytest.approx(step**2 / 6, rel=0.02)
    assert one.distortion(Sizes(((10**6,),))).omega > 7


def test_qsgd_is_damped_by_the_variance_of_the_change_at_hand() -> None:
    """With 2 levels, (3, 4) has norm 5, x = 1.2, 1.6, and variance 6.25 (0.16 + 0.24) = 2.5; EQUAL has omega."""
    change = torch.tensor([[3.0, -4.0, 0.0]])
    assert codec("qsgd", levels=2).damping(change, Sizes(((3,),))).item() == pytest.approx(1 / 1.1)
    worst = codec("qsgd", levels=2, bucket=16)
    assert worst.damping(EQUAL.unsqueeze(0), SIZES).item() == pytest.approx(worst.distortion(SIZES).damping)


def test_a_codec_is_damped_once_on_the_way_down_with_feedback_or_without() -> None:
    """The second model that a device receives is its first model plus QSGD's decoded change, damped once."""
    starts = []
    for feedback in (False, True):
        coded = {"name": "qsgd", "levels": 2, "error_feedback": feedback}
        one = Cell(settings("fedavg", "previous", downlink_codec=coded)).one
        stage = next(one.session(SessionStart(1, (0, 1, 2), longest=2)))
        stage.train([0, 1, 2], 1)
        first = one.federation.model.model.clone()
        stage.aggregate([0, 1, 2])
        wanted = one.federation.model.model - first
        stage.train([0, 1, 2], 2)
        starts.append(one.federation.model.waiting[0].round.start - first)
    by = float(codec("qsgd", levels=2).damping(wanted.unsqueeze(0), Sizes(((650,),))))
    assert torch.equal(*starts)
    # decoded values are multiples of half of their bucket's norm
    for bucket in (slice(0, 512), slice(512, 650)):
        levels = starts[0][:, bucket] / by * 2 / wanted[bucket].norm()
        assert (levels - levels.round()).abs().max() < 1e-3
        assert levels.abs().max() > 0.9


class Silent(Qsgd):
    """A codec that states no distortion."""

    distortion = Codec.distortion


def test_a_codec_that_states_nothing_is_refused_when_its_scenario_is_read() -> None:
    scenario = sections("""
        name=silent; devices={count: 4}; sessions={name: schedule, count: 1, rounds: 1}
        learning={dataset: digits, model: logistic, local: {lr: 0.05}}
    """)
    with refused_at("", "Silent", "leave the codec out"):
        Scenario.model_validate(within(scenario, {"learning": {"downlink_codec": Silent()}}))


class Boundless(Qsgd):
    """A codec with a distortion that no damping factor can bound."""

    def distortion(self, sizes: Sizes) -> Unbiased:
        return Unbiased(math.inf)


@pytest.mark.parametrize(
    ("way", "feedback", "algorithm", "remedy"),
    [
        ("uplink_codec", True, "fedavg", "or set error_feedback: false"),
        ("uplink_codec", False, "fedavg", None),
        ("uplink_codec", False, "ca2fl", "or leave the codec out"),
        ("downlink_codec", True, "fedavg", "or leave the codec out"),
        ("downlink_codec", False, "fedavg", "or leave the codec out"),
    ],
)
@pytest.mark.parametrize(
    ("cls", "words"), [(Silent, "states no bound"), (Boundless, "no damping factor can bound")]
)
def test_what_states_no_bound_is_refused_where_its_errors_are_fed_back(
    way: str, feedback: bool, algorithm: str, remedy: str | None, cls: type[Qsgd], words: str
) -> None:
    how = settings(algorithm, "previous").model_copy(update={way: cls(error_feedback=feedback)})
    if remedy is None:
        next(Cell(how).one.session(SessionStart(1, (0, 1), longest=1))).train([0, 1], 1)
        return
    with refused_at(f"learning.{way}", words, remedy):
        Cell(how)
