"""Test the examples of external components, one of every kind, and the scenario that runs all of them."""

import runpy
import shutil
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch

import edgefl
from edgefl import testing
from edgefl.channel.carrier import Carrier
from edgefl.channel.schedulers import Flows
from edgefl.commands.descriptions import describe
from edgefl.config import registry
from edgefl.config.component import AnyComponent, build, parameters_of, values_of
from edgefl.config.outside import looking_in
from edgefl.config.scenario_fields import Named, Section
from edgefl.engine.power_models import Equipment
from edgefl.engine.selectors import Candidates
from edgefl.engine.servers import ServerState
from edgefl.engine.sessions import SessionState
from edgefl.learning.algorithms import Updates
from edgefl.learning.chance import RoundChance
from edgefl.learning.codecs import Sizes
from edgefl.learning.datasets.digits import Digits
from edgefl.learning.drifts import Moment
from edgefl.learning.optimisers import Step
from edgefl.learning.warm_starts import Saved
from edgefl.rng import Streams
from edgefl.studies.validation import check
from edgefl.testing.decider_contract import candidates_of
from tests.refusals import refused_at

EXAMPLES = Path(__file__).parents[2] / "examples"
OUTSIDE = EXAMPLES / "outside.yaml"
LONGEST = 45  # lines, so that an example can be read at a glance


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Copy the examples, with the data set that make_digits.py writes."""
    folder = tmp_path_factory.mktemp("outside") / "examples"
    shutil.copytree(EXAMPLES, folder)
    with pytest.MonkeyPatch.context() as there:
        there.chdir(folder)
        runpy.run_path(str(folder / "make_digits.py"))
    return folder


@pytest.fixture(autouse=True)
def there(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Set up the process as if edgefl had been started in the folder of the examples."""
    monkeypatch.syspath_prepend(str(EXAMPLES))
    monkeypatch.chdir(folder)


def parts(section: Section) -> Iterator[tuple[str, AnyComponent]]:
    """Return the kind and name of every component in a scenario."""
    for key, field in type(section).model_fields.items():
        value = getattr(section, key)
        if isinstance(value, Section):
            yield from parts(value)
        for mark in field.metadata:
            if isinstance(mark, Named):
                yield mark.kind, value


def make(kind: str, **values: object) -> AnyComponent:
    """Return the example of a kind with these parameters."""
    return build(type(dict(parts(edgefl.load_scenario(OUTSIDE)))[kind]), values)


def test_every_kind_has_an_example_and_every_example_is_used() -> None:
    used = {kind: registry.name_of(kind, part) for kind, part in parts(edgefl.load_scenario(OUTSIDE))}
    assert set(used) == set(registry.KINDS)
    # scenarios name no learners (test_own.py tests the example); the decider is a second selector
    files = {file.stem for file in EXAMPLES.glob("my_*.py")} - {"my_learner", "my_decider"}
    assert {name.partition(":")[0] for name in used.values()} == files
    assert len(files) == len(used)


@pytest.mark.parametrize("kind", registry.KINDS)
def test_example(kind: str) -> None:
    component = dict(parts(edgefl.load_scenario(OUTSIDE)))[kind]
    testing.check(type(component), **values_of(component))
    name = registry.name_of(kind, component)
    text = describe(f"{kind}/{name}")
    assert text.startswith(f"{kind}/{name}\n\n")
    for parameter, field in parameters_of(type(component)).model_fields.items():
        assert f"  {parameter}: {field.description} (" in text
    lines = (EXAMPLES / f"{name.partition(':')[0]}.py").read_text().splitlines()
    assert len(lines) <= LONGEST


def test_the_scenario_of_all_examples_runs(tmp_path: Path) -> None:
    check(OUTSIDE)
    path = edgefl.simulate(edgefl.load_scenario(OUTSIDE), out=tmp_path / "run", device="cpu")
    rounds, devices, sessions = (
        pd.read_csv(path / f"{name}.csv") for name in ("rounds", "devices", "sessions")
    )
    assert list(sessions.session) == [1, 2, 3, 4]
    assert "plateau" in set(sessions.reason)
    evaluated = rounds[rounds.phase != "probe"]
    numbers = evaluated.select_dtypes("number").dropna(axis="columns", how="all")
    late = ["staleness_mean", "staleness_max"]  # columns that are empty in a round without updates
    assert np.isfinite(numbers.drop(columns=late)).all(axis=None)
    assert (numbers[late].isna().all(axis=1) == (evaluated.completed == 0)).all()
    assert (devices.energy_j > 0).all()
    assert evaluated.accuracy.iloc[-1] > 0.5  # guessing among ten digits would reach 0.1
    # a run writes its complete scenario, which does not change when it is loaded again
    again = edgefl.load_scenario(path / "scenario.yaml")
    assert again.model_dump(mode="json")["learning"]["algorithm"] == {
        "name": "my_algorithm:TrimmedMean",
        "trim": 0.25,
    }
    assert dict(parts(again)) == dict(parts(edgefl.load_scenario(OUTSIDE)))


# ---- behaviour of each example


def test_trimmed_mean_ignores_the_extremes_of_each_coordinate() -> None:
    rows = torch.tensor([[1.0, 9.0], [2.0, 1e9], [3.0, 8.0], [-1e9, 7.0]])
    equal = torch.full((4,), 0.25)
    updates = Updates(rows, torch.zeros(2), equal, 1.0, torch.ones(4), torch.ones(4), 0.1, {})
    model, _ = make("algorithms", trim=0.25).aggregate(torch.zeros(2), updates, {})
    assert model.tolist() == [1.5, 8.5]
    model, _ = make("algorithms", trim=0.0).aggregate(torch.zeros(2), updates, {})
    assert torch.equal(model, rows.mean(0))


def test_nearest_takes_the_model_whose_gradient_points_the_same_way() -> None:
    models = torch.eye(3)
    saved = [
        Saved(2, models[0], torch.tensor([1.0, 0.0])),
        Saved(3, models[1], torch.tensor([1.0, 1.0])),
        Saved(4, models[2], None),
    ]
    current, gradient = torch.zeros(3), torch.tensor([5.0, 4.0])
    opening = make("warm_starts").opening(current, saved, gradient)
    assert opening.weights == {3: 1.0}
    assert torch.equal(opening.model, models[1])
    for nothing_alike in (
        make("warm_starts", least_cosine=0.999).opening(current, saved, gradient),
        make("warm_starts").opening(current, saved, None),
        make("warm_starts").opening(current, [], gradient),
    ):
        assert nothing_alike.weights == {}
        assert torch.equal(nothing_alike.model, current)


def test_gelu_mlp_has_a_representation_and_counted_parameters() -> None:
    module = make("models", hidden=32, depth=2).build((8, 8), 10)
    assert sum(p.numel() for p in module.parameters()) == (64 * 32 + 32) + (32 * 32 + 32) + (32 * 10 + 10)
    x = torch.zeros(3, 8, 8)
    assert module.features(x).shape == (3, 32)
    assert torch.equal(module.head(module.features(x)), module(x))


def test_npz_holds_the_digits_and_says_what_is_missing(tmp_path: Path) -> None:
    shipped, digits = make("datasets", path="digits.npz").load(), Digits().load()
    for own, known in ((shipped.train, digits.train), (shipped.test, digits.test)):
        assert np.array_equal(own.x, known.x)
        assert np.array_equal(own.y, known.y)
    missing = make("datasets", path=tmp_path / "mine.npz")
    with refused_at("", "mine.npz"):
        missing.check()
    np.savez(missing.path, x_train=np.zeros((2, 3)))
    with refused_at("", "mine.npz", "y_train"):
        missing.load()


def test_quantity_skew_deals_out_everything_in_unequal_amounts() -> None:
    labels = np.arange(1000) % 10
    uneven = make("partitions", alpha=0.1).assign(labels, 8, 1, Streams(0))
    assert np.array_equal(np.sort(np.concatenate(uneven)), np.arange(1000))
    assert all(len(own) for own in uneven)
    # the largest of 8 shares by Dir(alpha, ...) tends to 1/8 for large alpha, and to 1 for small alpha
    sizes = [
        [len(own) for own in make("partitions", alpha=a).assign(labels, 8, 1, Streams(0))]
        for a in (0.01, 1e6)
    ]
    assert max(sizes[0]) > 900
    assert max(sizes[1]) < 175  # mean 125, binomial with a standard deviation of 10.5
    with refused_at("", "7 samples", "8 devices"):
        make("partitions").assign(labels[:7], 8, 1, Streams(0))


def test_negatives_twice_are_the_images() -> None:
    drift = make("drifts", at=3, share=0.5)
    images = Digits().load().test
    turned = drift.change(images, 10)
    assert not np.array_equal(turned.x, images.x)
    assert np.array_equal(drift.change(turned, 10).x, images.x - images.x.min())
    assert [drift.drifted_share(Moment(r, 0.0)) for r in (2, 3)] == [0, 0.5]


def test_shuttles_come_back_after_two_lengths() -> None:
    line = make("mobility", length_m=100, offset_m=20, speed_m_s=10)
    drop = np.zeros((50, 2))
    world = {"cell_radius_m": 250.0, "min_distance_m": 10.0, "streams": Streams(0)}
    movement = line.start(drop, **world)
    places = np.array([movement.positions_m(time_s) for time_s in np.arange(0.0, 20.5, 0.5)])
    assert np.abs(places[..., 0]).max() <= 50
    assert (places[..., 1] == 20).all()
    # 5 m in half a second, except when a shuttle turns
    steps = np.abs(np.diff(places[..., 0], axis=0))
    assert steps.max() == pytest.approx(5)
    assert ((steps < 4.999).sum(axis=0) <= 2).all()
    assert places[0] == pytest.approx(places[-1])
    # adding devices does not change the positions of the first devices
    assert np.array_equal(line.start(drop[:20], **world).positions_m(3.0), movement.positions_m(3.0)[:20])


def test_bands_go_from_near_to_far() -> None:
    selector = make("selectors", count=2, bands=3)
    gains = np.array([-90.0, -60.0, -100.0, -70.0, -80.0, -110.0])  # ids by gain: 1 3 4 0 2 5
    chosen = [selector.select(Candidates(range(6), gains, t), 2, np.random.default_rng(0)) for t in range(4)]
    assert chosen == [[1, 3], [0, 4], [2, 5], [1, 3]]
    assert selector.select(Candidates(range(6), gains, 2), 6, np.random.default_rng(0)) == list(range(6))


def test_the_frugal_takes_turns_among_the_cheap() -> None:
    with looking_in(EXAMPLES):
        decider: Any = registry.get("selectors", "my_decider:Frugal", trusted=True)
    testing.check(decider, count=2)
    joules = np.array([3.0, 1.0, 2.0])
    told = {"down_j": joules, "compute_j": np.zeros(3), "up_j": np.zeros(3), "samples": np.ones(3)}
    memory: Any = {}
    chosen: list[list[int]] = []
    rng = np.random.default_rng(0)
    for turn in range(3):
        decision = decider(count=2).decide(candidates_of(rng, [2, 3, 5], turn, **told), 2, rng, memory)
        memory, chosen = decision.memory, [*chosen, list(decision.ids)]
    assert chosen == [[3, 5], [2, 3], [2, 5]]


def test_a_quorum_waits_for_its_share_and_begins_anew_after_a_model() -> None:
    server = make("servers", share=0.75)
    answers = [server.ready(ServerState(places=4, working=4 - n, arrived=n)) for n in range(5)]
    assert answers == [0, 0, 0, 3, 4]
    during, after = (ServerState(4, 1, 0, since_s=5.0, now_s=now) for now in (6.0, 5.0))
    assert (server.room(during), server.room(after)) == (0, 3)


def test_plateau_waits_for_its_patience() -> None:
    policy = make("sessions", count=1, min_rounds=1, max_rounds=9, patience=2, least_fall=0.1)

    def reason(*losses: float) -> str | None:
        return policy.reason_to_end(SessionState(len(losses), {0}, {0}, losses))

    assert [reason(1.0), reason(1.0, 1.0)] == [None, None]
    assert reason(1.0, 1.0, 0.95) == "plateau"
    assert reason(1.0, 1.0, 0.85) is None
    assert reason(*np.geomspace(1.0, 0.1, 9)) == "max_rounds"


def test_office_hours_recur() -> None:
    office = make("churn", open_s=8, closed_s=16, late=0.5)
    times = np.array([list(islice(office.switches(device, Streams(0)), 4)) for device in range(100)])
    assert (times[:, 1] == 8).all()
    assert (times[:, 3] == 32).all()
    assert ((times[:, 0] >= 0) & (times[:, 0] < 4)).all()
    assert times[:, 2] == pytest.approx(times[:, 0] + 24)
    assert next(make("churn", late=0).switches(0, Streams(0))) == 0.0


def test_shortest_job_first_weighs_bits_and_channel() -> None:
    carrier = Carrier(1e6, 1e-3)
    flows = Flows(carrier, snr=np.array([10.0, 10.0, 0.1]), remaining_bits=np.array([2e5, 1e5, 1e5]))
    assert make("schedulers", for_all=0.3).shares(flows).tolist() == pytest.approx([0.1, 0.8, 0.1])
    assert make("schedulers", for_all=0).shares(flows).tolist() == [0.0, 1.0, 0.0]


def test_log_distance_falls_ten_n_db_a_decade() -> None:
    loss = make("path_loss", exponent=3.5, reference_db=40)
    level = {"carrier_hz": 3.5e9, "bs_height_m": 1.5}
    assert loss.path_loss_db([1.0, 10.0, 100.0], **level) == pytest.approx([40.0, 75.0, 110.0])
    with refused_at("", "1 to inf m", kind=ValueError):
        loss.path_loss_db([0.5], **level)


def test_a_day_has_its_busiest_quarter_of_an_hour() -> None:
    """The load from 20:00 to 20:15 is the load at its middle, 1/8 hour after the peak: cos(2 pi / 8 / 24)."""
    daily = make("backgrounds", mean_load=0.4, swing=0.5, uplink_part=0.25)
    peak = 0.4 * (1 + 0.5 * np.cos(2 * np.pi / 8 / 24))
    assert daily.load("downlink", 0, 20 * 3600.0) == (pytest.approx(peak), 20.25 * 3600)
    assert daily.load("uplink", 3, 20 * 3600.0 + 899) == (pytest.approx(peak / 4), 20.25 * 3600)
    loads = [daily.load("downlink", 0, 900.0 * step)[0] for step in range(96)]
    assert np.mean(loads) == pytest.approx(0.4)


def test_a_data_sheet_gives_watts_by_its_voltage() -> None:
    power = make("power_models", supply_v=4, receive_a=0.1, send_a=0.2, listen_a=0.05, listen_s=3)
    draws = power.draws(Equipment(0.2, 0.5, 0.1, 0.1))
    assert (draws.receive_w, draws.send_w, draws.wait_w) == (0.4, 0.8, 0.0)
    assert draws.tail == ((3, 0.2),)


def test_the_rate_halves_when_four_times_the_rounds_have_passed() -> None:
    shape = make("lr_schedules", first=5).shape
    assert [shape(t, 0.0) for t in (1, 6, 16)] == pytest.approx([1, 0.5**0.5, 0.5])


def test_focal_loss_of_a_sure_sample_nearly_vanishes() -> None:
    """For label probabilities of 1/2 and 9/10, losses are (1/2)^2 log 2 and (1/10)^2 log(10/9)."""
    logits = torch.tensor([[0.0, 0.0], [9.0, 1.0]]).clamp(min=1).log()
    losses = make("tasks", gamma=2).losses(logits, torch.tensor([0, 0]))
    assert losses.tolist() == pytest.approx([np.log(2) / 4, np.log(10 / 9) / 100], rel=1e-5)
    plain = make("tasks", gamma=0)
    assert plain.losses(logits, torch.tensor([1, 0])).tolist() == pytest.approx([np.log(2), np.log(10 / 9)])
    assert not plain.is_cross_entropy()


def test_lion_goes_the_same_way_in_every_weight() -> None:
    """With lr 0.1 and beta1 0.5, steps have the signs of (1, -2), and then of (0.5 - 1) / 2 and (-1 + 1) / 2."""
    lion = make("optimisers", beta2=0.5)
    local, mean = torch.zeros(1, 2), torch.zeros(1, 2)
    for number, grads in enumerate(([1.0, -2.0], [-1.0, 1.0]), start=1):
        lion.step(local, torch.tensor([grads]), [mean], Step(number, 0.1, 0.5, 0.0))
    assert local.tolist() == [pytest.approx([-0.1 + 0.1, 0.1])]
    assert mean.tolist() == [[-0.25, 0.0]]
    lion.step(local, torch.tensor([[1.0, 1.0]]), [mean], Step(3, 0.1, 0.5, 1.0))
    assert local.tolist() == [pytest.approx([-0.1, 0.1 * 0.9 - 0.1])]


def test_half_of_the_numbers_travel_and_the_others_wait() -> None:
    """Each row sends ten of twenty values, rounded to 2^-11, and 0 for the others, which stay in the residual."""
    halves, sizes = make("codecs", share=0.5), Sizes(((20,),))
    change = torch.arange(1.0, 41.0).reshape(2, 20) / 3
    rng = RoundChance(Streams(1), (1,), torch.device("cpu")).of_devices("codec", [4, 9])
    coded = halves.encode(change, {"residual": torch.zeros(2, 20)}, rng, sizes)
    assert (coded.rows != 0).sum(1).tolist() == [10, 10]
    assert coded.bits.tolist() == [10 * 16 + 64] * 2
    assert torch.equal(coded.rows + coded.memory["residual"], change)
    sent = coded.rows != 0
    assert not torch.equal(sent[0], sent[1])
    assert (coded.rows - change)[sent].abs().max() <= 40 / 3 * 2**-11
