"""Test codecs: bits counted by hand, closed forms of their errors, and identities during a run."""

import math
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

import edgefl
from edgefl.config import registry
from edgefl.config.component import build
from edgefl.contract import SessionStart
from edgefl.learning.algorithms import Sent, ServerState, Trained
from edgefl.learning.algorithms.fedavg import FedAvg
from edgefl.learning.chance import NO_CHANCE, Chance, RoundChance
from edgefl.learning.codecs import Codec, Coded, FeedbackCodec, Sizes
from edgefl.learning.codecs.qsgd import Qsgd
from edgefl.learning.codecs.top_k import TopK, largest
from edgefl.learning.updates.transfers import HELD
from edgefl.rng import Streams
from edgefl.testing.cell import within
from tests.refusals import refused_at
from tests.tables import sections
from tests.unit.learning.federation.test_resume import DEVICES, Cell, goes_on_after_any_round, settings, two

CPU = torch.device("cpu")
LOGISTIC = Sizes(((10, 784), (10,)), bits=32)
ROUNDING = 1e-6  # error of sums of float32 numbers of order 1


def codec(name: str, **values: Any) -> Codec:
    return build(registry.get("codecs", name), values)


def fresh(one: Codec, many: int, sizes: Sizes) -> dict[str, Tensor]:
    return {name: torch.zeros(many, size) for name, size in one.memory(sizes).items()}


def encode(one: Codec, change: Tensor, sizes: Sizes = LOGISTIC, rng: Chance = NO_CHANCE) -> Coded:
    return one.encode(change, fresh(one, len(change), sizes), rng, sizes)


def streams(many: int, round_: int = 1) -> Chance:
    return RoundChance(Streams(7), (round_,), CPU).of_devices("codec", range(many))


@pytest.mark.parametrize(
    ("name", "values", "bits"),
    [
        ("top_k", {"share": 0.1}, 25_120 + 785 * 13),  # 785 of 7,850 values, with indices of 13 bits
        ("top_k", {"share": 1}, 251_200),  # no indices if all values are sent
        # 15 levels and their signs are 31 values, 5 bits; 7,850 numbers in buckets of 512 have 16 norms
        ("qsgd", {"levels": 15, "bucket": None}, 39_282),
        ("qsgd", {"levels": 7}, 7850 * 4 + 16 * 32),
        ("qsgd", {"levels": 1, "bucket": 10**9}, 7850 * 2 + 32),
        ("rand_k", {}, 25_120 + 64),  # a seed replaces indices
        ("rand_k", {"share": 1}, 251_200),
        ("fedpaq", {}, 7850 * 8 + 64),  # codes of 8 bits, and the lowest and highest number
        ("signsgd", {}, 7_882),  # a sign per number, and a mean
        ("ef21", {}, 35_325),  # like top-k
        ("powersgd", {"rank": 2}, 51_136),  # 10 x 784 by rank 2: 2 (10 + 784) numbers, and ten biases
    ],
)
def test_bits_of_a_logistic_model_by_hand(name: str, values: dict[str, Any], bits: int) -> None:
    change = torch.cat([torch.arange(7840.0), torch.zeros(10)]).expand(2, -1)
    assert encode(codec(name, **values), change, rng=streams(2)).bits.tolist() == [bits] * 2


def test_top_k_leaves_out_the_smallest_squares() -> None:
    change = torch.randn(4, 100, generator=torch.Generator().manual_seed(1))
    sent = encode(codec("top_k", share=0.3), change, Sizes(((100,),))).rows
    squares = change.double().square().sort(1).values
    left = (change - sent).double().square().sum(1)
    assert torch.allclose(left, squares[:, :70].sum(1))
    assert (left <= 0.7 * squares.sum(1)).all()


def test_of_equal_numbers_those_that_come_first_are_the_largest() -> None:
    chosen = largest(torch.tensor([[1.0, 2.0, 1.0, 1.0], [0.0, 0.0, 0.0, 0.0]]), 3)
    assert chosen.tolist() == [[True, True, True, False], [True, True, True, False]]


N, STANDARD_ERRORS = 20_000, 4.5  # the largest of 100 normal numbers exceeds 4.5 in one of 1,500 tests


def is_unbiased_with_variance(one: Codec, v: Tensor, variance: np.ndarray) -> Tensor:
    """Check, within standard errors, that E Q = v and that E |Q - v|^2 is the sum of variances; return the draws."""
    drawn = encode(one, v.expand(N, -1), Sizes((tuple(v.shape),)), streams(N)).rows.double()
    error = (drawn.mean(0) - v.double()).abs().numpy()
    assert (error <= STANDARD_ERRORS * np.sqrt(variance / N) + ROUNDING).all()
    squares = (drawn - v.double()).square().sum(1)
    assert abs(float(squares.mean()) - variance.sum()) < 4 * float(squares.std()) / math.sqrt(N)
    return drawn


@pytest.mark.parametrize("norm", ["two", "max"])
@pytest.mark.parametrize("bucket", [None, 30])
def test_qsgd_is_unbiased_with_the_variance_of_its_closed_form(norm: str, bucket: int | None) -> None:
    """E |Q - v|^2 = sum (|v|/s)^2 p (1 - p) with p = frac(s |v_i| / |v|), even in the last, shorter bucket."""
    size, levels = 100, 3
    v = torch.randn(size, generator=torch.Generator().manual_seed(2))
    exact, variance = v.double().numpy(), np.zeros(size)
    for begin in range(0, size, bucket or size):
        part = slice(begin, begin + (bucket or size))
        length = np.abs(exact[part]).max() if norm == "max" else np.linalg.norm(exact[part])
        p = np.modf(levels * np.abs(exact[part]) / length)[0]
        variance[part] = (length / levels) ** 2 * p * (1 - p)
    is_unbiased_with_variance(codec("qsgd", levels=levels, bucket=bucket, norm=norm), v, variance)
    if norm == "two" and bucket is None:
        assert variance.sum() <= min(size / levels**2, math.sqrt(size) / levels) * (exact**2).sum()


def test_uniform_quantisation_is_unbiased_with_the_variance_of_its_closed_form() -> None:
    """With 2 bits, four values, a number has variance step^2 p (1 - p), and minimum and maximum are exact."""
    v = torch.randn(40, generator=torch.Generator().manual_seed(2))
    exact = v.double().numpy()
    step = (exact.max() - exact.min()) / 3
    p = np.modf((exact - exact.min()) / step)[0]
    p[exact.argmax()] = 0.0
    drawn = is_unbiased_with_variance(codec("fedpaq", bits=2), v, step**2 * p * (1 - p))
    assert len(np.unique(np.round(drawn.numpy(), 4))) == 4


def test_rand_k_without_feedback_is_unbiased_with_the_variance_of_its_closed_form() -> None:
    """Each number is 4 v in a quarter of the draws, so its variance is (1 / share - 1) v^2."""
    v = torch.randn(40, generator=torch.Generator().manual_seed(2))
    one = codec("rand_k", share=0.25, error_feedback=False)
    drawn = is_unbiased_with_variance(one, v, 3 * v.double().numpy() ** 2)
    assert ((drawn != 0).sum(1) == 10).all()


def test_signs_leave_what_their_closed_form_says() -> None:
    """|v - mean |v| sign v|^2 = |v|^2 - |v|_1^2 / M; the sign of 0 is +1."""
    v = torch.randn(3, 60, generator=torch.Generator().manual_seed(4))
    v[:, 7] = 0.0
    rows = encode(codec("signsgd"), v, Sizes(((60,),))).rows.double()
    exact = v.double()
    left = (rows - exact).square().sum(1)
    assert torch.allclose(left, exact.square().sum(1) - exact.abs().sum(1) ** 2 / 60)
    assert (rows[:, 7] > 0).all()


def test_ef21_comes_to_a_change_that_stays_and_is_error_feedback_for_the_first_message() -> None:
    """If each round sends a tenth of 50 values, the estimate exactly equals the change after ten rounds."""
    sizes, v = Sizes(((50,),)), torch.randn(2, 50, generator=torch.Generator().manual_seed(5))
    one = codec("ef21", share=0.1)
    memory = fresh(one, 2, sizes)
    for round_ in range(10):
        coded = one.encode(v, memory, NO_CHANCE, sizes)
        memory = dict(coded.memory)
        assert ((coded.rows != 0).sum(1) == 5 * (round_ + 1)).all()
        if not round_:
            assert torch.equal(coded.rows, encode(codec("top_k", share=0.1), v, sizes).rows)
    assert torch.equal(coded.rows, v)


# ---- sent part and residual add up


@pytest.mark.parametrize("name", registry.names("codecs"))
def test_messages_and_residual_sum_to_all_changes(name: str) -> None:
    """Sums are exact, as float32 adds these values without rounding, and these codecs send values unchanged."""
    one = build(registry.get("codecs", name), {})
    if not isinstance(one, FeedbackCodec):
        return
    one = one.model_copy(update={"error_feedback": True})
    sizes, many = Sizes(((50,),)), 3
    numbers = np.random.default_rng(3).integers(-512, 512, (6, many, 50)) / 256
    memory, sent = fresh(one, many, sizes), torch.zeros(many, 50)
    for round_, change in enumerate(torch.tensor(numbers, dtype=torch.float32)):
        coded = one.encode(change, memory, streams(many, round_), sizes)
        sent, memory = sent + coded.rows, dict(coded.memory)
    left = torch.tensor(numbers.sum(0)) - (sent + memory["residual"])
    assert float(left.abs().max()) <= (0.0 if name in EXACT else 1e-5)


EXACT = ("top_k", "rand_k")


def test_a_residual_changes_with_an_update_that_arrived_and_goes_where_its_device_goes() -> None:
    """Residuals are right with two cells, a device that moves, a lost update per round, and a restart."""
    how = settings(
        "fedavg",
        "previous",
        partition={"name": "dirichlet", "alpha": 0.5},  # devices keep their data between sessions
        uplink_codec={"name": "top_k", "share": 0.05},
        downlink_codec={"name": "top_k", "share": 0.3},
    )
    cells = two(how)
    sent, wanted = torch.zeros(2, DEVICES, 650, dtype=torch.float64)
    lost = 0
    for round_, (here, arriving) in enumerate(MOVES):
        stages = cells[round_ % 2].one.session(SessionStart(round_ // 2 + 1, tuple(here), longest=1))
        stage = next(stages)
        stage.train(here, 1)
        if round_ == 2:  # stop between training and aggregation, so that the round is trained again
            cells = two(how, [cell.snapshot() for cell in cells])
            stages = cells[round_ % 2].one.stages()
            stage = next(stages)
            stage.train(here, 1)
        for id_, update in cells[round_ % 2].one.federation.model.waiting.items():
            trained, k = update.round, update.position
            if id_ in arriving:
                start = trained.received_by([k]).reshape(-1, 650)[0]
                sent[id_] += (trained.sent[k] - start).double()
                wanted[id_] += (trained.rows[k] - start).double()
            else:
                lost += 1
        stage.aggregate(arriving)
        assert list(stages) == []
    residual = cells[0].training_data.devices.states.rows(
        "uplink codec: residual", range(DEVICES), torch.zeros(650)
    )
    assert (sent + residual - wanted).abs().max() < 10 * ROUNDING
    assert residual[[0, 1, 2, 3, 4]].abs().amax(1).min() > 1000 * ROUNDING
    assert lost == 5, "one lost update per round"
    assert cells[0].training_data.devices.states.has(HELD, range(DEVICES)).tolist() == [True] * 5 + [False]


# rounds of both cells in turn: participants, and devices whose updates arrive
MOVES = [
    ([0, 1, 2], [0, 1]),
    ([2, 3, 4], [3, 4]),
    ([1, 2, 5], [1, 2]),
    ([0, 1, 4], [0, 4]),
    ([0, 1, 2, 3], [1, 2, 3]),
]


# ---- in a run


@pytest.mark.parametrize("algorithm", ["fedavg", "scaffold", "apfl", "oracle"])
def test_codecs_go_on_after_any_round(algorithm: str) -> None:
    how = settings(
        algorithm,
        "previous",
        partition={"name": "dirichlet", "alpha": 0.5},
        cost={"payload": "exchanged"},
        uplink_codec={"name": "qsgd", "error_feedback": True, "levels": 100},
        downlink_codec={"name": "top_k", "share": 0.3},
    )
    goes_on_after_any_round(how, 5, {0})


SCENARIO = sections("""
    name=coded; seed=2; devices={count: 6}; rounds={selector: {name: uniform, count: 4}}
    sessions={name: schedule, count: 2, rounds: 3}; learning={dataset: digits, model: logistic}
    learning.partition={name: dirichlet, alpha: 0.5}; learning.local={batch: 16, lr: 0.05}
""")


def scenario(**learning: Any) -> edgefl.Scenario:
    return edgefl.load_scenario(within(SCENARIO, {"learning": learning}))


def tables(out: Path, **learning: Any) -> dict[str, bytes]:
    edgefl.simulate(scenario(**learning), out, device="cpu")
    return {file.name: file.read_bytes() for file in out.glob("*.csv")}


@pytest.mark.parametrize("algorithm", ["fedavg", "scaffold"])
def test_top_k_of_all_values_changes_no_byte(algorithm: str, tmp_path: Path) -> None:
    how: dict[str, Any] = {"algorithm": algorithm, "cost": {"payload": "exchanged"}}
    all_of_it = {"name": "top_k", "share": 1}
    plain = tables(tmp_path / "plain", **how)
    assert {"rounds.csv", "devices.csv"} <= set(plain)
    assert tables(tmp_path / "coded", uplink_codec=all_of_it, **how) == plain
    assert tables(tmp_path / "both", uplink_codec=all_of_it, downlink_codec=all_of_it, **how) == plain


def test_the_bits_of_each_device_and_round_reach_the_radio(tmp_path: Path) -> None:
    """Of 650 values, QSGD sends 4 bits each and two norms, top-k a tenth with indices of 10 bits.

    A device without an aggregated update receives the whole model.
    """
    coded = scenario(uplink_codec="qsgd", downlink_codec={"name": "top_k", "share": 0.1})
    coded = coded.with_({"radio.bandwidth_hz": 1e6, "radio.preset": "journal"})
    devices = edgefl.Results(edgefl.simulate(coded, tmp_path / "run", device="cpu")).devices
    assert set(devices.uplink_bits) == {650 * 4 + 2 * 32}
    first = ~devices.duplicated("device")
    assert set(devices.downlink_bits[first]) == {650 * 32}
    assert set(devices.downlink_bits[~first]) == {65 * (32 + 10)}
    seconds = devices.downlink_end_s - devices.downlink_start_s
    assert seconds[first].mean() > 5 * seconds[~first].mean(), "20,800 bits instead of 2,730"
    assert devices.energy_rx_j[first].mean() > 5 * devices.energy_rx_j[~first].mean()


def test_a_second_vector_travels_whole_where_it_counts(tmp_path: Path) -> None:
    for payload, whole in (("model", 0), ("exchanged", 1)):
        coded = scenario(algorithm="scaffold", cost={"payload": payload}, uplink_codec="top_k")
        run = edgefl.Results(edgefl.simulate(coded, tmp_path / payload, device="cpu"))
        assert set(run.devices.uplink_bits) == {65 * 42 + whole * 650 * 32}


class CountsItself(FedAvg):
    """An algorithm that counts its uploads' bits."""

    def upload(self, trained: Trained, state: ServerState, own: Any) -> Sent:
        return Sent(trained.local, bits=torch.ones(len(trained.local), dtype=torch.int64))


def test_an_algorithm_that_counts_its_own_bits_takes_no_codec() -> None:
    how = settings("fedavg", "previous", uplink_codec=TopK()).model_copy(update={"algorithm": CountsItself()})
    stage = next(Cell(how).one.session(SessionStart(1, (0, 1), longest=1)))
    with refused_at("learning.uplink_codec", "CountsItself"):
        stage.train([0, 1], 1)


class Wrong(Qsgd):
    """A codec whose `encode` returns no memory."""

    def encode(self, change: Tensor, memory: Any, rng: Chance, sizes: Sizes) -> Coded:
        return Coded(change, torch.ones(len(change), dtype=torch.int64), {})


def test_a_codec_that_breaks_its_word_is_an_error() -> None:
    how = settings("fedavg", "previous", uplink_codec=Wrong(error_feedback=True))
    stage = next(Cell(how).one.session(SessionStart(1, (0, 1), longest=1)))
    with refused_at("learning.uplink_codec", "[]", "['residual']"):
        stage.train([0, 1], 1)


class Alone:
    """An `all_reduce` over a single worker, without threads, which returns the worker's own tensor.

    Gloo's groups have threads: a thread that drops its group's last reference waits for itself and ends the process.
    """

    def __init__(self, tensor: Tensor, **_: object) -> None:
        self._tensor = tensor

    def get_future(self) -> torch.futures.Future[list[Tensor]]:
        future: torch.futures.Future[list[Tensor]] = torch.futures.Future()
        future.set_result([self._tensor])
        return future


def test_powersgd_is_pytorchs_communication_hook(monkeypatch: pytest.MonkeyPatch) -> None:
    """Over four rounds, a decoded matrix, filter and bias agree within 1e-5 (one worker, feedback and warm start)."""
    import torch.distributed as dist
    from torch.distributed.algorithms.ddp_comm_hooks import powerSGD_hook
    from torch.testing._internal.distributed.fake_pg import FakeStore

    class Linear(torch.nn.Module):
        """A module that multiplies its parameters by the input, so that the input is the gradient."""

        def __init__(self) -> None:
            super().__init__()
            generator = torch.Generator().manual_seed(6)
            self.shapes = (20, 15), (8, 3, 3, 3), (20,)
            self.parts = torch.nn.ParameterList(
                [torch.nn.Parameter(torch.randn(shape, generator=generator)) for shape in self.shapes]
            )

        def forward(self, x: Tensor) -> Tensor:
            flat = torch.cat([part.reshape(-1) for part in self.parts])
            return flat @ x

    monkeypatch.setattr(dist, "all_reduce", Alone)
    # if a machine has a GPU, the hook waits for the GPU although it does not use it
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    dist.init_process_group("fake", store=FakeStore(), rank=0, world_size=1)
    try:
        module = Linear()
        sizes, rank = Sizes(module.shapes), 2
        trained = torch.nn.parallel.DistributedDataParallel(module)
        state = powerSGD_hook.PowerSGDState(
            dist.group.WORLD,
            matrix_approximation_rank=rank,
            start_powerSGD_iter=2,
            min_compression_rate=1,
            use_error_feedback=True,
            warm_start=True,
            random_seed=3,
        )
        order: list[int] = []  # widths of the matrices in the bucket's order

        def hook(state: Any, bucket: dist.GradBucket) -> torch.futures.Future[Tensor]:
            order[:] = [math.prod(one.shape[1:]) for one in bucket.gradients() if one.dim() > 1]
            return powerSGD_hook.powerSGD_hook(state, bucket)

        trained.register_comm_hook(state, hook)
        one, memory = codec("powersgd", rank=rank), None
        changes = torch.randn(6, sizes.count, generator=torch.Generator().manual_seed(8))
        for round_, change in enumerate(changes):
            module.zero_grad()
            trained(change).backward()
            theirs = torch.cat([part.grad.reshape(-1) for part in module.parts])
            if round_ < 2:  # the hook's first rounds are not compressed
                assert torch.allclose(theirs, change)
                continue
            if memory is None:
                memory = fresh(one, 1, sizes)
                # the hook's initial factors Q with seed 3; the factors of width 15 are first
                generator = torch.Generator().manual_seed(int(np.random.RandomState(3).randint(10**9)))
                drawn = {width: torch.randn(1, width, rank, generator=generator) for width in order}
                begun = torch.cat([drawn[width].reshape(-1) for width in (15, 27)])
                given: Any = SimpleNamespace(normal=partial(begun.reshape, 1))
            coded = one.encode(change.unsqueeze(0), memory, given, sizes)
            memory = dict(coded.memory)
            assert (coded.rows[0] - theirs).abs().max() < 1e-5
            assert (coded.rows[0] - change).abs().max() > 0.1, "the codec is lossy"
        assert coded.bits.tolist() == [32 * (2 * (20 + 15) + 2 * (8 + 27) + 20)]
    finally:
        dist.destroy_process_group()


def test_a_matrix_of_rank_1_arrives_whole() -> None:
    coded = encode(codec("powersgd", rank=2), torch.ones(1, 7850), rng=streams(1))
    assert torch.allclose(coded.rows, torch.ones(1, 7850), atol=1e-5)
