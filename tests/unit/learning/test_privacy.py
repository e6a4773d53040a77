"""Test clipped, noised updates: the noise's standard deviation, and epsilon against an accountant and an integral."""

import math
from collections.abc import Callable
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from scipy.integrate import quad
from scipy.optimize import brentq
from scipy.stats import norm

from edgefl import Results, load_scenario, simulate
from edgefl.learning.chance import RoundChance
from edgefl.learning.privacy import PrivacySettings, epsilon_of
from edgefl.learning.settings import LearningSettings
from edgefl.learning.updates.device_states import DeviceStates
from edgefl.learning.updates.release import PrivateRelease, release_of
from edgefl.learning.updates.trained_model import TrainedModel
from edgefl.rng import Streams
from edgefl.run.api import resume
from tests.tables import sections
from tests.tools import kill
from tests.tools.leaving import leave
from tests.unit.learning.softmax import ALL, DEVICES, HELD, LR, M, P, named, plan, track

# noise, updates, delta, and epsilon by dp-accounting 0.6.0's PLDAccountant at steps of 1e-4, an upper bound
PUBLISHED = [
    (1.0, 1, 1e-5, 4.37717810002493),
    (1.0, 10, 1e-5, 17.85658683146691),
    (4.0, 100, 1e-5, 13.206712241909576),
    (0.5, 3, 1e-6, 21.83921640548454),
    (2.0, 1, 1e-3, 1.352276250668219),
]
SIGMAS, NUMBERS = 4.5, 40_000
CHANCE = RoundChance(Streams(3), (1, "train", 1))
STATES = DeviceStates(DEVICES, torch.device("cpu"))
RUN = sections("""
    name=private; devices={count: 12, mobility: {name: random_waypoint, speed_min_m_s: 10, speed_max_m_s: 20}}
    layout={sites: [[0, 0], [200, 0]], federations: all}
    radio={preset: journal, propagation: {shadowing: spatial}}
    rounds={every_s: 4, selector: {name: uniform, count: 3}}; sessions={name: schedule, count: 2, rounds: 6}
    learning={dataset: digits, partition: iid, model: logistic, local: {steps: 1}}
""")


def composed(noise: float, updates: int, delta: float) -> float:
    """Return epsilon by composing privacy losses, independently of the formulas in `edgefl.learning.privacy`.

    The loss of one Gaussian mechanism with noise z is normal, mean 1 / (2 z^2) and variance 1 / z^2; over n updates
    losses add up, and delta(epsilon) is the mean of (1 - e^(epsilon - loss)) where it is positive.
    """
    mean, std = updates / (2 * noise**2), math.sqrt(updates) / noise

    def above(epsilon: float) -> float:
        found, _ = quad(
            lambda loss: -math.expm1(epsilon - loss) * norm.pdf(loss, mean, std),
            epsilon,
            max(epsilon, mean) + 12 * std,
            epsabs=1e-14,
            epsrel=1e-10,
        )
        return float(found) - delta

    return float(brentq(above, 0.0, mean + 12 * std, xtol=1e-10))


def accounted(noise: float, updates: int, delta: float) -> float:
    """Return epsilon by dp-accounting's accountant of privacy losses."""
    accounting = pytest.importorskip("dp_accounting")
    accountant = accounting.pld.PLDAccountant(value_discretization_interval=1e-4)
    accountant.compose(accounting.GaussianDpEvent(noise), updates)
    return float(accountant.get_epsilon(delta))


@pytest.mark.parametrize("epsilon_by", [epsilon_of, composed, accounted])
@pytest.mark.parametrize(("noise", "updates", "delta", "epsilon"), PUBLISHED)
def test_epsilon_agrees_with_an_accountant(
    noise: float, updates: int, delta: float, epsilon: float, epsilon_by: Callable[..., float]
) -> None:
    assert epsilon_by(noise, updates, delta) == pytest.approx(epsilon, rel=1e-7)


def test_epsilon_by_its_definition() -> None:
    """For n = 2 updates, delta integrates the excess of one density over e^epsilon times the other density."""
    noise, delta = 1.5, 1e-3
    mu, epsilon = math.sqrt(2) / noise, epsilon_of(noise, 2, delta)
    crossing = epsilon / mu + mu / 2
    found, _ = quad(lambda x: norm.pdf(x, mu) - math.exp(epsilon) * norm.pdf(x), crossing, crossing + 20)
    assert found == pytest.approx(delta, rel=1e-6)
    assert epsilon_of(noise, 0, delta) == 0
    assert epsilon_of(0.0, 1, delta) == math.inf


Run = Callable[..., Results]
NOISE, DELTA = 2.0, 1e-4
BY_DEVICES = f"learning.privacy={{clip_norm: 0.5, noise: {NOISE}, where: device, delta: {DELTA:.1e}}}"


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Return a function that runs a scenario with given keys, once per set of keys."""
    return cache(
        lambda *keys: simulate(load_scenario(RUN, keys), tmp_path_factory.mktemp("run"), device="cpu")
    )


# uploads are too stale, or cut off at the session's end
FEDBUFF = "rounds.server={name: fedbuff, buffer: 2, max_staleness: 0, beyond: drop}"
# settings that waste uploads, and the outcomes of such uploads
SENT_IN_VAIN = [
    ([FEDBUFF, "rounds.every_s=null", "radio.sharing=dynamic"], {"dropped", "surplus_uplink"}),
    (["rounds.over_selection=2.0"], {"surplus_uplink", "left_uplink"}),
    (["rounds.deadline_s=0.034"], {"late_uplink"}),
    (["rounds.deadline_s=0.034", "rounds.min_updates=3"], {"late_uplink", "dropped"}),
]


@pytest.mark.parametrize(("keys", "vain"), SENT_IN_VAIN)
def test_devices_that_add_noise_are_charged_per_upload(keys: list[str], vain: set[str], ran: Run) -> None:
    """Each device's epsilon counts all its uploads in devices.csv, including uploads that are never aggregated."""
    path = ran(BY_DEVICES, "radio.bandwidth_hz=2.0e+5", *keys)
    devices, rounds = pd.read_csv(path / "devices.csv"), pd.read_csv(path / "rounds.csv")
    sent = devices[devices.uplink_start_s.notna()]
    assert devices.epsilon.notna().equals(devices.uplink_start_s.notna())
    counts = sent.groupby("device").cumcount() + 1
    expected = {n: composed(NOISE, n, DELTA) for n in set(counts)}
    assert sent.epsilon.tolist() == pytest.approx([expected[n] for n in counts], rel=1e-7)
    # the runs contain uploads that no model uses
    happened = set(sent.outcome)
    stale = "staleness" in sent and sent[sent.outcome == "completed"].staleness.isna().any()
    if stale or ((rounds.completed < 3).any() and "rounds.min_updates=3" in keys):
        happened.add("dropped")
    assert vain <= happened


def test_only_what_is_published_is_charged_where_the_server_adds_the_noise(ran: Run) -> None:
    keys = ["radio.bandwidth_hz=2.0e+5", "rounds.over_selection=2.0"]
    path = ran(f"learning.privacy={{clip_norm: 0.5, noise: {NOISE}, delta: {DELTA:.1e}}}", *keys)
    devices = pd.read_csv(path / "devices.csv")
    told = devices[devices.outcome == "completed"]
    assert len(told) < devices.uplink_start_s.notna().sum()
    assert devices[devices.outcome != "completed"].epsilon.isna().all()
    counts = told.groupby("device").cumcount() + 1
    assert told.epsilon.tolist() == pytest.approx([epsilon_of(NOISE, n, DELTA) for n in counts])


def test_long_changes_are_clipped_and_short_ones_left_as_they_are() -> None:
    release = PrivateRelease(PrivacySettings(clip_norm=1.0, noise=0.0), STATES)
    start, rows = torch.full((4,), 0.1), torch.tensor([[0.3, 0.1, 0.1, 0.1], [3.1, 4.1, 0.1, 0.1]])
    got = release.limited(rows, start, [1, 2], CHANCE)
    assert got[0].tolist() == rows[0].tolist()
    assert (got[1] - start).tolist() == pytest.approx([0.6, 0.8, 0.0, 0.0], abs=1e-6)


@pytest.mark.parametrize("where", ["device", "server"])
def test_noise_has_the_stated_deviation(where: str) -> None:
    """Noise on each device has standard deviation z C; noise on the server has z C times the largest share."""
    settings = PrivacySettings.model_validate({"clip_norm": 2.0, "noise": 1.5, "where": where})
    release = PrivateRelease(settings, STATES)
    rows, shares = torch.zeros(2, NUMBERS), torch.tensor([0.75, 0.25])
    limited = release.limited(rows, torch.zeros(NUMBERS), [1, 2], CHANCE)
    noised = release.averaged(limited, shares, CHANCE)
    sigma = 3.0 if where == "device" else 3.0 * 0.75
    for row in noised.double().numpy():
        assert abs(row.std() / sigma - 1) < SIGMAS / math.sqrt(2 * NUMBERS)
    same = np.corrcoef(noised.double().numpy())[0, 1]
    assert same == pytest.approx(1.0 if where == "server" else 0.0, abs=SIGMAS / math.sqrt(NUMBERS))


@pytest.mark.parametrize(("weighting", "largest"), [("data", P.max()), ("equal", 1 / DEVICES)])
def test_noise_follows_the_weights_of_the_algorithms_mean(weighting: str, largest: float) -> None:
    """One update moves an equal mean by C / K, so the noise is z C / K, whatever the devices' amounts of data.

    With a large tau, FedAdagrad's step is the mean change.
    """
    algorithm = named("fedadagrad", weighting=weighting, beta1=0.0, tau=1e3, server_lr=2e3)
    draws, clip, noise, models = 100, 0.2, 1.5, []
    for z in (noise, 0.0):
        learning = LearningSettings(
            dataset="digits", model="logistic", privacy=PrivacySettings(clip_norm=clip, noise=z)
        )
        plain, states = track(algorithm)
        layout = plain._training.layout
        release = release_of(learning, layout, states)
        one = TrainedModel(plain._training, algorithm, states, plain.model, None, Streams(5), release)
        one.open(plain.model, HELD)
        one.train(ALL, plan(algorithm, ALL, 1), LR, [], at=(1, "train", 1))
        waiting, state = dict(one.waiting), one.state
        for draw in range(draws):
            one.model, one.waiting, one.state = plain.model, dict(waiting), state
            one.aggregate(ALL, HELD, at=(1, "train", draw))
            models.append(one.model.double().numpy())
    added = np.array(models[:draws]) - np.array(models[draws:])
    expected = noise * clip * largest
    assert abs(added.std() / expected - 1) < SIGMAS / math.sqrt(2 * draws * M)


def test_without_noise_and_far_beyond_the_clip_it_is_fedavg(ran: Run) -> None:
    assert ran("learning.privacy={clip_norm: 1.0e+6, noise: 0}").rounds.equals(ran().rounds)


# the second sessions have other labels than the first, with two in common
DEALT_AGAIN = ["learning.partition={name: iid, overlap: 0.2}"]


@pytest.mark.parametrize(
    "keys",
    [
        [],
        pytest.param(DEALT_AGAIN, marks=pytest.mark.always),
        ["radio.bandwidth_hz=2.0e+5", *SENT_IN_VAIN[0][0]],
    ],
)
def test_accounts_last_over_cells_sessions_and_a_resume(keys: list[str], ran: Run, tmp_path: Path) -> None:
    whole = ran(BY_DEVICES, *keys)
    leave(load_scenario(RUN, [BY_DEVICES, *keys]), tmp_path / "left", 15, every=4)
    resume(tmp_path / "left")
    assert kill.differences(tmp_path / "left", whole) == []
    devices = pd.read_csv(whole / "devices.csv")
    told = devices[devices.uplink_start_s.notna()]
    counts = told.groupby("device").cumcount() + 1
    assert told.epsilon.tolist() == pytest.approx([epsilon_of(NOISE, n, DELTA) for n in counts])
    assert devices.epsilon.notna().equals(devices.uplink_start_s.notna())
    both = told.groupby("device")[["cell", "session"]].nunique()
    if keys in ([], DEALT_AGAIN):  # with overlapping rounds, devices barely move during a run of a second
        assert ((both["cell"] == 2) & (both["session"] == 2)).any()  # in two cells and sessions


def test_selection_by_loss_is_noted(tmp_path) -> None:
    notes: list[str] = []
    keys = ["learning.privacy={clip_norm: 1}", "rounds.selector={name: oort, count: 3}", "sessions.rounds=1"]
    simulate(load_scenario(RUN, keys), tmp_path / "run", device="cpu", on_note=notes.append)
    assert any("oort chooses by devices' reports about their data" in note for note in notes)
