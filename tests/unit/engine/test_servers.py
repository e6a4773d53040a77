"""Derive runs of servers with overlapping rounds by hand: start times, model versions, and costs of each device."""

import itertools
import math
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pytest

from edgefl.contract import REPORTED_LOSS
from edgefl.engine.air.sent_time import SentTime, united
from edgefl.engine.records import DeviceRound, Event, Round
from edgefl.engine.servers.tiers import Tiers
from edgefl.engine.sessions import SessionPolicy, SessionState
from edgefl.testing.cell import Scripted, SmallWorld, small_world

FLOPS_PER_SAMPLE, SAMPLES_PER_S = 1e3, 8_000_000  # samples per second of the journal's processor
JOULES_PER_S = 0.1  # computing power of the journal's processor: 1e-28 x (1e9)^3


def computing(
    server: Mapping[str, Any], durations_s: list[float], rounds: int, **sections: Any
) -> SmallWorld:
    """Return a cell whose devices compute for given times and send no bits, so that only computing takes time."""
    work = {k: (1, round(SAMPLES_PER_S * duration_s), 0, 0) for k, duration_s in enumerate(durations_s)}
    rules = {"server": server, **sections.pop("rules", {})}
    radio = {"sharing": "dynamic", "scheduler": "round_robin", **sections.pop("radio", {})}
    policy = sections.pop("policy", {"name": "schedule", "count": 1, "rounds": rounds})
    learner = sections.pop("learner", Scripted(of=work, flops_per_sample=FLOPS_PER_SAMPLE))
    places_m = [20.0 + k for k in range(len(durations_s))]
    return small_world(places_m, learner=learner, rules=rules, radio=radio, policy=policy, **sections)


def versions(world: SmallWorld) -> Iterator[tuple[DeviceRound, int, int | None]]:
    """Yield each participation with the model version that it began from and its staleness."""
    further = world.rows.further
    return zip(world.rows.of[DeviceRound], further["version"], further["staleness"], strict=True)


def models(world: SmallWorld) -> list[tuple[float, int, list[tuple[int, Any, Any]]]]:
    """Return each model's time, version, and devices with the version they started from and their staleness."""
    parts = versions(world)
    return [
        (
            round(row.end_s, 6),
            row.version,
            [
                (part.device, began, tau)
                for part, began, tau in itertools.islice(parts, row.participants)
                if part.outcome == "completed"
            ],
        )
        for row in world.rows.of[Round]
    ]


def test_fedasync_makes_a_model_of_each_update() -> None:
    """Device 0 needs 1 s and device 1 needs 2.6 s; each starts again from the model that includes its update."""
    world = computing({"name": "fedasync"}, [1.0, 2.6], rounds=8).run()
    assert models(world) == [
        (1.0, 1, [(0, 0, 0)]),
        (2.0, 2, [(0, 1, 0)]),
        (2.6, 3, [(1, 0, 2)]),
        (3.0, 4, [(0, 2, 1)]),
        (4.0, 5, [(0, 4, 0)]),
        (5.0, 6, [(0, 5, 0)]),
        (5.2, 7, [(1, 3, 3)]),
        (6.0, 8, [(0, 6, 1)]),
    ]
    # device 1 has worked for 0.8 s when the session ends; the energy of this work counts once, with the last model
    last = world.rows.of[Round][-1]
    cut = world.rows.of[DeviceRound][-1]
    assert (last.participants, last.completed) == (2, 1)
    assert (cut.device, cut.outcome) == (1, "surplus_compute")
    assert last.energy_wasted_j == cut.energy_j == pytest.approx(0.8 * JOULES_PER_S)
    whole = 6 * 1.0 + 2 * 2.6 + 0.8
    assert sum(row.energy_j for row in world.rows.of[Round]) == pytest.approx(whole * JOULES_PER_S)
    ledger = list(world.simulation.ledger.rows(np.full(2, 6.0), 0.0))
    assert sum(row.compute_j for row in ledger) == pytest.approx(whole * JOULES_PER_S)
    assert sum(row.wasted_j for row in ledger) == pytest.approx(0.8 * JOULES_PER_S)


def test_fedbuff_waits_for_its_buffer_and_fills_places_at_once() -> None:
    """Devices 0 (1 s) and 1 (2.6 s) work first; when device 0's update is in the buffer, device 2 (1.7 s) begins."""
    server = {"name": "fedbuff", "buffer": 2}
    rules = {"selector": {"name": "round_robin", "count": 2}}
    world = computing(server, [1.0, 2.6, 1.7], rounds=2, rules=rules).run()
    assert models(world) == [(2.6, 1, [(0, 0, 0), (1, 0, 0)]), (3.6, 2, [(0, 1, 0), (2, 0, 1)])]
    trained = [call for call in world.learner.calls if call[0] == "train"]
    assert trained == [("train", 1, (0, 1)), ("train", 2, (2,)), ("train", 3, (0,)), ("train", 4, (1,))]
    assert [now.models for now in world.learner.moments] == [0, 0, 1, 1]
    assert world.rows.further["working"] == [1, 0]


def test_a_semi_synchronous_server_carries_late_updates_into_the_next_round() -> None:
    """After 1 s and 2.6 s of work, with a period of 2 s, device 1's update is in device 0's round; then both wait."""
    world = computing({"name": "semi_synchronous", "every_s": 2.0}, [1.0, 2.6], rounds=4).run()
    assert models(world) == [
        (2.0, 1, [(0, 0, 0)]),
        (3.0, 2, [(0, 1, 0), (1, 0, 1)]),
        (5.0, 3, [(0, 2, 0)]),
        (6.0, 4, [(0, 3, 0), (1, 2, 1)]),
    ]


def test_the_servers_own_time_is_added_to_each_period() -> None:
    server, rules = {"name": "semi_synchronous", "every_s": 2.0}, {"server_s": 0.5}
    world = computing(server, [1.0, 2.6, 5.1], rounds=4, rules=rules).run()
    assert [time_s for time_s, _, _ in models(world)] == [2.5, 5.0, 7.5, 10.0]


def test_a_period_in_which_nothing_arrives_ends_with_the_first_update() -> None:
    world = computing({"name": "semi_synchronous", "every_s": 0.25}, [1.0, 2.6], rounds=2).run()
    assert models(world) == [(1.0, 1, [(0, 0, 0)]), (2.0, 2, [(0, 1, 0)])]


def test_tiers_are_waited_for_each_by_itself() -> None:
    """A tier starts again as soon as its own devices are done: 0 and 1 (1 s, 1.5 s), or 2 and 3 (4 s, 3 s)."""
    world = computing({"name": "tiers", "count": 2}, [1.0, 1.5, 4.0, 3.0], rounds=4).run()
    assert models(world) == [
        (1.5, 1, [(0, 0, 0), (1, 0, 0)]),
        (3.0, 2, [(0, 1, 0), (1, 1, 0)]),
        (4.0, 3, [(2, 0, 2), (3, 0, 2)]),
        (4.5, 4, [(0, 2, 1), (1, 2, 1)]),
    ]
    assert [call[2] for call in world.learner.calls if call[0] == "train"][:2] == [(0, 1), (2, 3)]


def test_tiers_are_of_equal_size_by_speed() -> None:
    assert Tiers(count=2).tiers([1.0, 3.0, 2.0, 2.0]) == (0, 1, 0, 1)
    # seven devices form three tiers: the three fastest devices, the next two, and the last two
    assert Tiers(count=3).tiers([5.0, 4.0, 3.0, 2.0, 1.0, 0.0, 9.0]) == (2, 1, 1, 0, 0, 0, 2)


def test_a_tier_whose_devices_are_all_lost_begins_anew() -> None:
    """Device 1 is the only device of its tier; it leaves at 0.5 s and starts again when it returns at 1 s."""
    world = computing({"name": "tiers", "count": 2}, [1.3, 2.0], rounds=3, crossings_s={1: [0.5, 1.0]}).run()
    assert [(time_s, [one[0] for one in made]) for time_s, _, made in models(world)] == [
        (1.3, [0]), (2.6, [0]), (3.0, [1])
    ]  # fmt: skip


def test_updates_beyond_the_largest_staleness_are_dropped_and_their_energy_is_wasted() -> None:
    """The first update of device 1 is two models stale, which exceeds the limit of one model."""
    world = computing({"name": "fedasync", "max_staleness": 1}, [1.0, 2.6], rounds=3).run()
    assert models(world) == [
        (1.0, 1, [(0, 0, 0)]),
        (2.0, 2, [(0, 1, 0)]),
        (3.0, 3, [(0, 2, 0), (1, 0, None)]),
    ]
    assert [call[1] for call in world.learner.calls if call[0] == "aggregate"] == [(0,), (0,), (0,)]
    # device 1's computing from 2.6 s on is cut off and wasted, too
    assert world.rows.of[Round][-1].energy_wasted_j == pytest.approx(3.0 * JOULES_PER_S)
    capped = computing({"name": "fedasync", "max_staleness": 1, "beyond": "cap"}, [1.0, 2.6], rounds=3).run()
    assert models(capped)[-1] == (2.6, 3, [(1, 0, 2)])
    allowed = computing({"name": "fedasync", "max_staleness": 2}, [1.0, 2.6], rounds=3).run()
    assert models(allowed)[-1] == (2.6, 3, [(1, 0, 2)])


def test_a_buffer_that_cannot_fill_is_made_a_model_as_it_is() -> None:
    """One of three devices leaves at 0.5 s, so the server aggregates when two updates are in the buffer."""
    server = {"name": "fedbuff", "buffer": 3}
    world = computing(server, [1.0, 2.0, 1.5], rounds=1, crossings_s={1: [0.5]}).run()
    assert models(world) == [(1.5, 1, [(0, 0, 0), (2, 0, 0)])]
    assert [part.outcome for part in world.rows.of[DeviceRound]] == ["completed", "left_compute", "completed"]


def test_a_device_that_comes_begins_as_soon_as_there_is_room() -> None:
    world = computing({"name": "fedasync"}, [1.0, 1.0], rounds=3, crossings_s={1: [0.005, 0.4]}).run()
    assert [time_s for time_s, _, _ in models(world)] == [1.0, 1.4, 2.0]


def test_a_device_may_be_in_a_model_twice() -> None:
    """Device 0 leaves at 0.5 s, returns at 1 s, and ends at 2 s: the model's round counts both attempts once."""
    server = {"name": "fedbuff", "buffer": 2}
    world = computing(server, [1.0, 3.0], rounds=1, crossings_s={0: [0.5, 1.0]}).run()
    parts = [(part.device, part.outcome, round(part.energy_j, 9)) for part in world.rows.of[DeviceRound]]
    assert parts == [(0, "left_compute", 0.05), (0, "completed", 0.1), (1, "completed", 0.3)]
    ledger = [(row.compute_j, row.wasted_j) for row in world.simulation.ledger.rows(np.full(2, 3.0), 0.0)]
    assert ledger == [pytest.approx((0.15, 0.05)), pytest.approx((0.3, 0.0))]


def test_too_few_updates_change_nothing() -> None:
    server, rules = {"name": "fedbuff", "buffer": 3}, {"min_updates": 3}
    world = computing(server, [1.0, 2.0, 1.5], rounds=1, rules=rules, crossings_s={1: [0.5]}).run()
    row = world.rows.of[Round][0]
    assert (row.version, row.completed, row.energy_wasted_j) == (0, 2, row.energy_j)
    assert [event.detail for event in world.rows.of[Event] if event.event == "no_updates"] == [
        "train round 1: 2 arrived"
    ]


def test_from_the_end_of_a_session_on_nobody_begins_and_what_is_under_way_makes_its_last_model() -> None:
    """After a session of 3.5 s, no device starts, and the work under way is aggregated into a last model at 4 s."""
    policy = {"name": "interval", "count": 1, "length_s": 3.5}
    world = computing({"name": "fedasync"}, [1.0, 2.6], rounds=0, policy=policy).run()
    assert [time_s for time_s, _, _ in models(world)] == [1.0, 2.0, 2.6, 3.0, 4.0]
    world = computing({"name": "fedasync"}, [1.0, 2.6], rounds=9, duration_s=3.5).run()
    assert [time_s for time_s, _, _ in models(world)] == [1.0, 2.0, 2.6, 3.0, 4.0]
    ends = [event.detail for event in world.rows.of[Event] if event.event == "session_end"]
    assert ends == ["duration"]


def test_the_server_takes_its_time_for_each_model() -> None:
    rules = {"server_s": 0.125, "server_power_w": 8.0}
    world = computing({"name": "fedasync"}, [1.0], rounds=3, rules=rules).run()
    assert [time_s for time_s, _, _ in models(world)] == [1.125, 2.25, 3.375]
    assert [row.energy_server_j for row in world.rows.of[Round]] == [1.0, 1.0, 1.0]


def test_devices_go_on_while_models_are_at_the_cloud() -> None:
    """The backhaul takes 0.25 s each way: device 0 makes a model at 1 s and starts again at 1.5 s, when it returns.

    Device 0's model of 2.5 s returns at 3 s. Device 1's update of 2.6 s waits until 3 s, and is two models stale.
    """
    cloud = {"every": 1, "backhaul_bps": 1e15, "backhaul_latency_s": 0.25}
    world = computing({"name": "fedasync"}, [1.0, 2.6], rounds=3, cloud=cloud).run()
    # a transfer waits for the next slot of 0.5 ms
    made = [(round(time_s, 2), *rest) for time_s, *rest in models(world)]
    assert made == [(1.5, 1, [(0, 0, 0)]), (3.0, 2, [(0, 1, 0)]), (3.5, 3, [(1, 0, 2)])]
    assert world.rows.further["cloud_version"] == [1, 2, 3]
    assert [call for call in world.learner.calls if call[0] == "adopt"] == [("adopt", (0,), True)] * 3


def test_reports_are_those_of_the_updates_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    learner = Scripted(
        of={0: (1, 8_000_000, 0, 0), 1: (1, 20_800_000, 0, 0)},
        scalars={REPORTED_LOSS: (1.0, 3.0)},
        flops_per_sample=FLOPS_PER_SAMPLE,
    )
    policy = {"name": "adaptive", "count": 1, "min_rounds": 4, "max_rounds": 4}
    world = computing({"name": "fedasync"}, [1.0, 2.6], rounds=4, learner=learner, policy=policy)
    losses: list[tuple[float, ...]] = []
    policy_class = type(world.server._policy)
    ends = policy_class.reason_to_end

    def noted(self: SessionPolicy, state: SessionState) -> str | None:
        losses.append(state.losses)
        return ends(self, state)

    monkeypatch.setattr(policy_class, "reason_to_end", noted)
    world.run()
    assert losses[-1] == (1.0, 1.0, 3.0, 1.0)


# -- laws ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("places", "buffer"), [(5, 1), (6, 2), (7, 3)])
@pytest.mark.parametrize("spread", ["alike", "tenfold", "pareto"])
def test_mean_staleness_is_concurrency_less_one_over_the_buffer(
    places: int, buffer: int, spread: str
) -> None:
    """Mean staleness is (M - 1) / K for any durations, as each model adds one to the staleness of M - 1 updates.

    So the staleness of all updates, including those that the end cuts off, sums to (M - 1) x number of models.
    """
    rng = np.random.default_rng(places)
    of = {
        "alike": 1.0 + 0.3 * rng.random(12),
        "tenfold": 1.0 + 9.0 * rng.random(12),
        "pareto": rng.pareto(1.5, 12) + 1,
    }
    durations_s, rounds = of[spread].tolist(), 60
    server = {"name": "fedbuff", "buffer": buffer, "concurrency": places}
    world = computing(server, durations_s, rounds, radio={"slot_s": 1e-5}).run()
    total = sum(rounds - began if tau is None else tau for _, began, tau in versions(world))
    assert total == (places - 1) * rounds
    taken = [tau for tau in world.rows.further["staleness"] if tau is not None]
    assert len(taken) == buffer * rounds
    assert set(world.rows.further["working"][:-1]) == {places - 1}


@pytest.mark.parametrize("buffer", [1, 2, 3])
def test_updates_of_one_slot_are_all_in_models_before_any_device_begins_anew(buffer: int) -> None:
    """Six equal devices end in one slot. The slot's k-th model has updates of staleness k, with mean (6 / K - 1) / 2.

    If no two devices ended in the same slot, the mean would be (6 - 1) / K.
    """
    devices, steps = 6, 4
    models_of_step = devices // buffer
    rounds = steps * models_of_step
    world = computing({"name": "fedbuff", "buffer": buffer}, [1.0] * devices, rounds).run()
    staleness = [tau for tau in world.rows.further["staleness"] if tau is not None]
    assert staleness == np.repeat(np.tile(np.arange(models_of_step), steps), buffer).tolist()
    assert np.mean(staleness) == (devices / buffer - 1) / 2
    assert {row.end_s for row in world.rows.of[Round]} == {float(step) for step in range(1, steps + 1)}


def test_lost_work_is_part_of_the_law() -> None:
    """The staleness sum includes work of devices that switch off, with its staleness at that time."""
    durations_s, places, rounds = [1.31, 2.17, 0.83, 1.71, 2.93, 1.09, 0.71, 1.93], 4, 60
    rng = np.random.default_rng(8)
    switches_s = [[0.0, *np.cumsum(0.2 + rng.random(400)).tolist()] for _ in range(3)]
    switches_s += [[0.0]] * 5
    world = computing(
        {"name": "fedasync", "concurrency": places},
        durations_s,
        rounds,
        radio={"slot_s": 1e-5},
        switches_s=switches_s,
    ).run()
    made_s = np.array([row.end_s for row in world.rows.of[Round]])
    rows, further = world.rows.of[DeviceRound], world.rows.further
    total = lost = 0
    for part, began, tau in zip(rows, further["version"], further["staleness"], strict=True):
        if tau is None:
            tau = int((made_s <= part.compute_end_s).sum()) - began
            lost += part.outcome.startswith("off")
        total += tau
    assert lost > 10
    assert total == (places - 1) * rounds


def elementary(order: int, values: list[float]) -> float:
    return math.fsum(math.prod(some) for some in itertools.combinations(values, order))


def test_participation_follows_elementary_symmetric_polynomials_of_the_durations() -> None:
    """With durations T and M of n devices at work, each replaced by a uniformly drawn idle one, device i sends
    e_{M-1}(T without i) / e_M(T) updates a second.

    Over a long time, the standard deviation of a renewal count is at most that of a Poisson count if intervals vary
    less than exponential intervals. Here an interval is a constant plus a geometric wait for the device's turn.
    """
    durations_s, places, rounds, sigmas = [1.0, 1.0, 2.0, 2.0, 5.0, 5.0], 3, 3000, 4.5
    world = computing({"name": "fedasync", "concurrency": places}, durations_s, rounds).run()
    end_s = world.rows.of[Round][-1].end_s
    parts = zip(world.rows.of[DeviceRound], world.rows.further["staleness"], strict=True)
    counts = Counter(part.device for part, tau in parts if tau is not None)
    assert sum(counts.values()) == rounds
    for i in range(len(durations_s)):
        others = durations_s[:i] + durations_s[i + 1 :]
        expected = end_s * elementary(places - 1, others) / elementary(places, durations_s)
        assert abs(counts[i] - expected) < sigmas * math.sqrt(expected)


@pytest.mark.parametrize(
    ("server", "rules", "rounds"),
    [
        ({"name": "fedbuff", "buffer": 2}, {"selector": {"name": "round_robin", "count": 8}}, 60),
        ({"name": "fedasync"}, {"selector": {"name": "round_robin", "count": 5}}, 100),
        ("synchronous", {"selector": {"name": "round_robin", "count": 6}, "over_selection": 1.2}, 20),
        ("synchronous", {"selector": {"name": "round_robin", "count": 5}}, 20),
    ],
)
def test_devices_take_turns_with_every_server(server: Any, rules: dict[str, Any], rounds: int) -> None:
    """Twelve devices of nearly the same speed take part equally often, to within one participation."""
    world = computing(server, [1.0 + 0.01 * k for k in range(12)], rounds=rounds, rules=rules).run()
    dispatched = Counter(part.device for part in world.rows.of[DeviceRound])
    assert len(dispatched) == 12
    assert max(dispatched.values()) - min(dispatched.values()) <= 1


@pytest.mark.parametrize(
    "server", [{"name": "fedbuff", "buffer": 2}, {"name": "semi_synchronous", "every_s": 1.5}]
)
def test_refl_counts_devices_at_work_as_present(server: dict[str, Any]) -> None:
    """All twelve devices are always present, so REFL has only ties to break; three of them take 2.5 s, others 1 s."""
    durations_s = [1.0 + 0.01 * k + 1.5 * (k > 8) for k in range(12)]
    world = computing(server, durations_s, rounds=60, rules={"selector": {"name": "refl", "count": 4}}).run()
    dispatched = Counter(part.device for part in world.rows.of[DeviceRound])
    mean = sum(dispatched.values()) / 12
    # binomial counts; the slower devices are idle less often
    assert len(dispatched) == 12
    assert max(dispatched.values()) < mean + 4.5 * math.sqrt(mean)


# -- what the server sends ----------------------------------------------------------------------------


def test_time_sent_is_billed_once() -> None:
    sent = SentTime()
    assert sent.take(0, [(0.0, 2.0), (1.0, 3.0)]) == [(0.0, 3.0)]
    assert sent.take(0, [(2.0, 5.0), (6.0, 7.0)]) == [(3.0, 5.0), (6.0, 7.0)]
    assert sent.take(0, [(4.5, 6.5)]) == [(5.0, 6.0)]
    assert sent.take(1, [(4.5, 6.5)]) == [(4.5, 6.5)], "another site"
    assert sent.take(0, [(0.0, 7.0)]) == []
    sent.forget(7.0)
    assert sent.take(0, [(6.0, 8.0)]) == [(6.0, 8.0)]


def test_time_sent_is_that_of_the_union_in_any_order() -> None:
    rng = np.random.default_rng(5)
    for _ in range(50):
        starts_s = rng.integers(0, 40, 12) / 4
        intervals = [(a, a + b) for a, b in zip(starts_s, rng.integers(0, 12, 12) / 4, strict=True)]
        sent, total_s = SentTime(), 0.0
        for part in (intervals[:3], intervals[3:7], intervals[7:]):
            total_s += sum(b - a for a, b in sent.take(0, part))
        assert total_s == sum(b - a for a, b in united(intervals))


@pytest.mark.parametrize("power", ["full", "per_resource_block"])
def test_the_energy_of_a_session_is_that_of_the_time_in_which_the_site_sent(power: str) -> None:
    """With power per block, a site pays for the time in which it serves any device; with `full`, for each share."""
    world = small_world(
        [20.0 + 20.0 * k for k in range(8)],
        policy={"name": "schedule", "count": 1, "rounds": 6},
        radio={"sharing": "dynamic", "scheduler": "round_robin", "budget": {"power_over_share": power}},
        rules={"server": {"name": "fedbuff", "buffer": 2, "concurrency": 6}},
    ).run()
    watt = 10 ** ((43 - 30) / 10)
    sent = [(p.downlink_start_s, p.downlink_end_s) for p in world.rows.of[DeviceRound]]
    if power == "full":
        expected_j = watt * world.simulation.radio.air.band(0, "downlink").band.sent_slots * 0.5e-3
    else:
        expected_j = watt * sum(b - a for a, b in united(sent))
    assert sum(row.energy_server_j for row in world.rows.of[Round]) == pytest.approx(expected_j, rel=1e-12)
