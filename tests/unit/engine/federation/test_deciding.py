"""Test a decider's inputs, and that the engine carries out its decisions."""

from dataclasses import replace
from typing import Any, ClassVar, cast

import numpy as np
import pytest
from pydantic import Field, PrivateAttr

from edgefl.channel.rates import spectral_efficiency
from edgefl.config import registry
from edgefl.engine.power_models.phone_5g import Phone5G
from edgefl.engine.power_models.tr38840 import TR38840
from edgefl.engine.records import DeviceRound, Round
from edgefl.engine.selectors import Candidates, Decider, Decision, Memory, Selector
from edgefl.engine.selectors._allocation import least_energy, least_time
from edgefl.engine.selectors._resources import uploads
from edgefl.testing import Scripted, small_world
from edgefl.testing.decider_contract import candidates_of
from tests.refusals import refused_at
from tests.tools.constants import made, with_constants

SLOT_S = 0.5e-3
PLACES_M = [60.0, 90.0, 120.0]
OPTIMUM = 1e-6  # relative, in energy
ROUNDS = {"name": "schedule", "count": 1, "rounds": 3}
CIRCUITS = {"uplink_circuit_power_w": 0.1, "capacitance": 1e-27}


class Asked(Decider):
    """Let all devices take part as `fixed` does, and record the inputs."""

    sets: ClassVar[frozenset[str]] = frozenset({"shares", "power", "clock"})
    fixed: dict[str, list[float]] = Field(default_factory=dict)
    _told: list[tuple[Candidates, Memory]] = PrivateAttr(default_factory=list)

    def decide(
        self, candidates: Candidates, number: int, rng: np.random.Generator, memory: Memory
    ) -> Decision:
        self._told.append((candidates, memory))
        fixed = {name: np.array(values) for name, values in self.fixed.items()}
        return Decision(candidates.ids, **fixed, memory={"rounds": memory.get("rounds", 0) + 1})  # type: ignore[arg-type]


def world(selector: Any, policy: Any = None, **given: Any) -> Any:
    return small_world(
        PLACES_M, policy=policy or ROUNDS, rules={"selector": selector, **given.pop("rules", {})}, **given
    )


def test_what_is_expected_is_what_happens() -> None:
    """Expected times and energies are right to within a slot per transfer, as links do not fade."""
    decider = Asked()
    run = world(decider, devices=CIRCUITS).run()
    (first, _), (second, memory), _ = decider._told
    rows = run.rows.of[DeviceRound][:3]
    for k, row in enumerate(rows):
        assert row.downlink_end_s - row.downlink_start_s == pytest.approx(first.down_s[k], abs=SLOT_S)
        assert row.compute_end_s - row.compute_start_s == pytest.approx(first.compute_s[k], rel=1e-12)
        assert row.uplink_end_s - row.uplink_start_s == pytest.approx(first.up_s[k], abs=SLOT_S)
        assert row.energy_rx_j == pytest.approx(first.down_j[k], abs=first.receive_w[k] * SLOT_S)
        assert row.energy_tx_j == pytest.approx(first.up_j[k], abs=0.3 * SLOT_S)
        assert row.energy_compute_j == pytest.approx(first.compute_j[k], rel=1e-12)
    assert np.isinf(first.age).all()
    assert np.isnan(first.duration_s).all()
    assert second.age.tolist() == second.taken.tolist() == second.completed.tolist() == [1.0] * 3
    assert second.joules == pytest.approx([row.energy_j for row in rows])
    assert second.duration_s == pytest.approx([row.uplink_end_s - row.downlink_start_s for row in rows])
    assert memory == {"rounds": 1}


class OneByOne(Asked):
    """Let one device take part in each round, in turn; the round could have all of them."""

    def decide(
        self, candidates: Candidates, number: int, rng: np.random.Generator, memory: Memory
    ) -> Decision:
        self._told.append((candidates, memory))
        return Decision([candidates.ids[candidates.turn % len(candidates)]])


@pytest.mark.parametrize("p0_dbm", [None, -85.0])
@pytest.mark.parametrize("hz", [10e6, 5e6])
def test_an_upload_alone_has_the_whole_band_and_the_power_for_it(hz: float, p0_dbm: float | None) -> None:
    """On the whole band power control allows three times the power that it allows on a third of the band."""
    decider = OneByOne()
    run = world(decider, radio={"budget": {"uplink_p0_dbm": p0_dbm}}, devices={"max_bandwidth_hz": hz}).run()
    told, _ = decider._told[0]
    assert (told.radiated.max() < 1 / 3) == (p0_dbm is not None)  # on a third of the band
    for k, row in enumerate(run.rows.of[DeviceRound]):
        took_s = row.uplink_end_s - row.uplink_start_s
        assert row.device == k
        assert took_s == pytest.approx(decider._told[k][0].up_alone_s[k], abs=SLOT_S)
        assert took_s < told.up_s[k] - 3 * SLOT_S


BY_BLOCK = {"power_over_share": "per_resource_block", "uplink_power_over_share": "full"}


@pytest.mark.parametrize(
    "given",
    [
        {"radio": {"bandwidth_hz": 100e6}, "devices": {"max_bandwidth_hz": 5e6}},
        {"radio": {"neighbour_load": 1.0}},
        {"radio": {"neighbour_load": 1.0, "interference": "slot", "budget": BY_BLOCK}},
    ],
    ids=["narrow radios", "mean interference", "interference by slot"],
)
def test_what_is_expected_is_what_happens_on_every_link(given: dict[str, Any]) -> None:
    """Narrow radios, and links with constant interference, take the expected times to within a slot.

    At a load of 1, each of two sites sends in all slots, and so does one device of each cell; three devices take part
    in site 0's rounds, so that with full power on each share, three shares interfere.
    """
    decider, radio = Asked(), {"propagation": {"shadowing": "spatial"}, **given["radio"]}
    run = small_world(
        [(60.0, 0.0), (0.0, 80.0), (-90.0, 0.0), (160.0, 0.0)],
        learner=Scripted(work=(1, 0, 4_000_000, 4_000_000)),
        layout={"sites": [[0.0, 0.0], [200.0, 0.0]], "radius_m": 300.0, "federations": [0]},
        radio=radio,
        devices=given.get("devices"),
        rules={"selector": decider},
    ).run()
    (told, _), rows = decider._told[0], run.rows.of[DeviceRound]
    assert len(rows) == 3
    for k, row in enumerate(rows):
        assert row.downlink_end_s - row.downlink_start_s == pytest.approx(told.down_s[k], abs=SLOT_S)
        assert row.uplink_end_s - row.uplink_start_s == pytest.approx(told.up_s[k], abs=SLOT_S)


def test_a_narrow_radio_is_used_as_a_whole_and_the_others_end_together() -> None:
    """With `least_time`, a far device with 2 MHz sends at full power on 2 MHz; the other devices share 8 MHz."""
    rng = np.random.default_rng(4)
    given = {"static": np.ones(4, dtype=bool), "snr_up": np.array([1.0, 9.0, 20.0, 30.0])}
    candidates = candidates_of(rng, [0, 1, 2, 3], 0, widest=np.array([0.2, 1.0, 1.0, 1.0]), **given)
    found = registry.get("selectors", "least_time")(count=4).decide(candidates, 4, rng, {})
    shares, power, clock_hz = found.up_shares, found.power, found.clock_hz
    assert shares is not None
    assert power is not None
    assert clock_hz is not None
    assert (shares[0], power[0], clock_hz[0]) == pytest.approx((0.2, 1.0, candidates.clock_hz[0]))
    assert shares.sum() == pytest.approx(1.0)
    sent_s = candidates.up_bits / (10e6 * shares * spectral_efficiency(power * candidates.snr_up / shares))
    ends_s = candidates.down_s + candidates.cycles / clock_hz + sent_s
    assert ends_s[1:] == pytest.approx(np.full(3, ends_s[1]), rel=1e-6)
    assert ends_s[0] > ends_s[1]


def test_tails_that_are_expected_are_those_that_are_booked() -> None:
    """Expected tails equal recorded ones: computing cuts the first tail short, and the pause lets the second end."""
    decider, tail = Asked(), made(Phone5G, tail_s=0.03, tail_w=1.5)
    run = world(decider, devices={"power": tail}, rules={"pause_s": 60.0}).run()
    (told, _), *_ = decider._told
    booked_j = [row.energy_tail_j for row in run.rows.of[DeviceRound][:3]]
    assert min(booked_j) > 0
    assert told.tail_j == pytest.approx(booked_j)
    assert told.total_j == pytest.approx(told.down_j + told.compute_j + told.up_j + booked_j)


def test_joules_that_are_expected_have_the_waiting_of_a_frame() -> None:
    """Expected energies in DDDSU include waiting slots, for which TR 38.840 states a third of the receive power."""
    decider = Asked()
    power = {"name": "tr38840"}
    world(decider, devices={"power": power}, radio={"tdd": {"pattern": "DDDSU"}}).run()
    told, _ = decider._told[0]
    down, up = told.downlink.frame.mean, told.uplink.frame.mean
    assert 0 < up < 0.3 < 0.7 < down < 1
    # a phone draws units of 6 mW: 300 to receive, 700 to send with 23 dBm, 100 in the other slots
    receive_w, send_w = 6e-3 * (300 * down + 100 * (1 - down)), 6e-3 * (700 * up + 100 * (1 - up))
    assert told.down_j == pytest.approx(receive_w * told.down_s)
    assert told.up_j == pytest.approx(send_w * told.up_s)


ACCESS = {
    "setup_s": 0.1,
    "grant_s": 0.015,
    "round_trip_s": 0.02,
    "before_downlink_s": 0.03,
    "before_uplink_s": 0.05,
}


@pytest.mark.parametrize("pause_s", [0.0, 0.25, 20.0], ids=["listening", "asleep", "released"])
def test_access_that_is_expected_is_what_happens(pause_s: float) -> None:
    """The times and energies that a decider expects, including access, are right in all rounds.

    Rest, listening and transfers begin at slot boundaries, so that times may differ by a few slots.
    """
    near_s = 4 * SLOT_S
    decider, run_radio = Asked(), {"access": ACCESS}
    run = world(decider, devices={"power": "tr38840"}, radio=run_radio, rules={"pause_s": pause_s}).run()
    rounds, rows = run.rows.of[Round], run.rows.of[DeviceRound]
    for number, round_ in enumerate(rounds):
        told = decider._told[number][0]
        for k, row in enumerate(rows[3 * number : 3 * number + 3]):
            assert row.downlink_end_s - round_.start_s == pytest.approx(told.down_s[k], abs=near_s)
            assert row.uplink_end_s - row.compute_end_s == pytest.approx(told.up_s[k], abs=near_s)
            assert row.energy_rx_j == pytest.approx(told.down_j[k], abs=1.8 * near_s)
            assert row.energy_tx_j == pytest.approx(told.up_j[k], abs=4.2 * near_s)
            sent_s = told.up_s[k] - told.up_access_s[k]
            assert row.uplink_end_s - row.uplink_start_s == pytest.approx(sent_s, abs=SLOT_S)
            if number < len(rounds) - 1:
                after = decider._told[number + 1][0]
                assert after.duration_s[k] == pytest.approx(row.uplink_end_s - round_.start_s, abs=SLOT_S)


def test_access_leaves_less_time_before_a_deadline() -> None:
    """`fedcs` plans uploads one after the other, so fewer candidates meet the deadline with access times."""
    rng = np.random.default_rng(0)
    candidates = candidates_of(rng, list(range(12)), 0, up_bits=np.full(12, 1e5))
    fast = registry.get("selectors", "fedcs")(deadline_s=1.0)
    without = fast.decide(candidates, 12, rng, {}).ids
    late = replace(candidates, up_access_s=np.full(12, 0.5))
    with_access = fast.decide(late, 12, rng, {}).ids
    in_time = candidates.down_s + candidates.compute_s + 0.5 <= 1.0
    assert set(with_access) < set(without)
    assert all(in_time[id_] for id_ in with_access)
    assert late.before_work_s == pytest.approx(candidates.down_s + 0.5)


def test_a_decision_is_carried_out() -> None:
    """On a share b of the band with a share x of the power, a link has SNR x snr / b; time and energy follow."""
    shares, power, clock_hz = [0.5, 0.2, 0.3], [0.5, 1.0, 0.25], [1e9, 5e8, 2.5e8]
    decider = Asked(fixed={"up_shares": shares, "power": power, "clock_hz": clock_hz})
    run = world(decider, devices=CIRCUITS).run()
    told, _ = decider._told[0]
    for k, row in enumerate(run.rows.of[DeviceRound][:3]):
        rate = shares[k] * 10e6 * spectral_efficiency(power[k] * told.snr_up[k] / shares[k])
        sent_s = told.up_bits[k] / rate
        took_s = row.uplink_end_s - row.uplink_start_s
        assert took_s == pytest.approx(sent_s, abs=SLOT_S)
        assert row.energy_tx_j == pytest.approx((0.1 + power[k] * told.amplifier_w[k]) * took_s)
        assert row.compute_end_s - row.compute_start_s == pytest.approx(told.cycles[k] / clock_hz[k])
        assert row.energy_compute_j == pytest.approx(1e-27 * told.cycles[k] * clock_hz[k] ** 2)


def test_a_round_of_the_fewest_joules() -> None:
    """The engine's energy and end times equal the computed optimum, as links without fading have Shannon's rate."""
    learner = Scripted(work=(5, 64_000, 3_000_000, 3_000_000))
    decider = Asked()
    world(decider, devices=CIRCUITS, learner=learner).run()
    told, _ = decider._told[0]
    of = uploads(told, 3.0)
    soonest = least_time(of, told.down_s)
    soonest_s = soonest[0]
    best = least_energy(of, told.down_s, soonest, 2 * soonest_s)
    run = world({"name": "least_energy", "count": 3, "slack": 2}, devices=CIRCUITS, learner=learner).run()
    rows = run.rows.of[DeviceRound][:3]
    spent_j = sum(row.energy_tx_j + row.energy_compute_j for row in rows)
    assert spent_j == pytest.approx(best.energy_j(of).sum(), rel=0.01)
    assert run.rows.of[Round][0].latency_s == pytest.approx(2 * soonest_s, rel=0.01)
    fast = world({"name": "least_time", "count": 3}, devices=CIRCUITS, learner=learner).run()
    assert fast.rows.of[Round][0].latency_s == pytest.approx(soonest_s, abs=3 * SLOT_S)


@pytest.mark.parametrize(
    ("name", "values", "noun"),
    [
        ("up_shares", [0.5, 0.5, 0.5], "sum to 1.5"),
        ("power", [1.0, 0.0, 1.0], "above 0 and up to 1"),
        ("clock_hz", [1e9, 1e9, 2e9], "2.e+09"),
        ("up_shares", [0.5, 0.5], "3 devices"),
    ],
)
def test_what_is_no_decision(name: str, values: list[float], noun: str) -> None:
    fixed = {name: values}
    with refused_at("", name, noun):
        world(Asked(fixed=fixed)).run()


class Naming(Decider):
    """A decider that requests two devices and returns given devices, whatever the candidates."""

    ids: list[int]

    def wanted(self, present: int) -> int:
        return 2

    def decide(
        self, candidates: Candidates, number: int, rng: np.random.Generator, memory: Memory
    ) -> Decision:
        return Decision(np.array(self.ids, dtype=int))


class Plain(Selector):
    """A selector that receives only gains and returns given devices, like `Naming`."""

    ids: Any

    def wanted(self, present: int) -> int:
        return 2

    def select(self, candidates: Candidates, number: int, rng: np.random.Generator) -> list[int]:
        return cast(list[int], self.ids)


@pytest.mark.parametrize(
    "ids",
    [[], [0, 1, 2], [1, 0], [1, 1], [1, 3], ["a"], None],
    ids=["none", "one too many", "not in order", "twice", "not a candidate", "no number", "no list"],
)
def test_who_cannot_be_chosen(ids: Any) -> None:
    with refused_at("", "1 to 2"):
        world(Plain(ids=ids)).run()
    if ids is not None and "a" not in ids:
        with refused_at("", "1 to 2"):
            world(Naming(ids=ids)).run()
    for kind in (Naming, Plain):
        run = world(kind(ids=[0, 2])).run()
        assert [row.device for row in run.rows.of[DeviceRound]] == [0, 2] * 3


def test_where_rounds_overlap_the_same_decider_fills_the_places() -> None:
    run = world(
        {"name": "energy_aware", "count": 2},
        radio={"sharing": "dynamic"},
        rules={"server": {"name": "fedbuff", "buffer": 2}},
        policy={"name": "schedule", "count": 1, "rounds": 6},
    )
    run.run()
    assert len(run.rows.of[Round]) == 6


def test_where_rounds_overlap_lengths_are_reported_without_losses() -> None:
    run = world(
        {"name": "best_norm", "count": 2},
        learner=Scripted(scalars={"update_norm": [1.0, 3.0, 2.0]}),
        radio={"sharing": "dynamic"},
        rules={"server": {"name": "fedbuff", "buffer": 2}},
        policy={"name": "schedule", "count": 1, "rounds": 4},
    ).run()
    assert len(run.rows.of[Round]) == 4


def test_losses_are_reported_and_paid_for() -> None:
    losses = {"loss_received": [2.0, 3.0, 1.0]}
    plain = world("all").run()
    learner = Scripted(scalars=losses)
    run = world({"name": "power_of_choice", "count": 3, "d": 3}, learner=learner).run()
    bits = [[row.uplink_bits for row in one.rows.of[DeviceRound]] for one in (plain, run)]
    assert [b - a for a, b in zip(*bits, strict=True)] == [32] * 9


def test_joules_above_the_least() -> None:
    """The excess is the energy above the minimum; for least_energy it comes only from rounding up to slots."""
    learner = Scripted(work=(5, 64_000, 3_000_000, 3_000_000))
    record = {"record": {"energy_excess": True}}
    decider = Asked()
    plain = world(decider, devices=CIRCUITS, learner=learner, **record).run()
    told, _ = decider._told[0]
    rows = plain.rows.of[DeviceRound][:3]
    spent_j = sum(row.energy_tx_j + row.energy_compute_j for row in rows)
    received_s = np.array([row.downlink_end_s for row in rows])
    of = uploads(told, 3.0)
    end_s = max(row.uplink_end_s for row in rows)
    least_j = least_energy(of, received_s, least_time(of, received_s), end_s).energy_j(of).sum()
    assert plain.rows.further["energy_excess_j"][0] == pytest.approx(spent_j - least_j, rel=1e-6)
    best = {"name": "least_energy", "count": 3, "slack": 2}
    frugal = world(best, devices=CIRCUITS, learner=learner, **record).run()
    excess_j = frugal.rows.further["energy_excess_j"][0]
    spent_j = sum(row.energy_tx_j + row.energy_compute_j for row in frugal.rows.of[DeviceRound][:3])
    assert abs(excess_j) < 0.01 * spent_j
    assert plain.rows.further["energy_excess_j"][0] > 0


DECIDERS = [
    name for name in registry.names("selectors") if issubclass(registry.get("selectors", name), Decider)
]
NEEDS = {"fedcs": {"deadline_s": 100.0}, "power_of_choice": {"count": 2, "d": 3}}
# settings that make the radio, its bits, or computing cost no energy
FREE = {
    "radio": {"power": made(TR38840, unit_w=0.0)},
    "bits": {"power": with_constants(Phone5G, base_w=0.0)()},
    "computing": {"capacitance": 0.0},
    "all": {"power": with_constants(Phone5G, base_w=0.0, send_w_per_mbit_s=0.0)(), "capacitance": 0.0},
}


@pytest.mark.parametrize("access", [None, ACCESS], ids=["at once", "access"])
@pytest.mark.parametrize("selector", DECIDERS)
@pytest.mark.parametrize("devices", [*registry.names("power_models"), *FREE])
def test_deciders_with_every_power_model_and_with_what_costs_nothing(
    selector: str, devices: str, access: dict[str, float] | None
) -> None:
    """Every decider's result is valid and costs no less than the minimum, with any power model, without fading.

    Links are FDD at Shannon's rates; the minimum is found to within OPTIMUM of its energy.
    """
    losses = {"loss_received": [2.0, 3.0, 1.0], "update_norm": [1.0, 3.0, 2.0]}
    for work in ((5, 64_000, 3_000_000, 3_000_000), (5, 64_000, 3_000_000, 0), (0, 0, 3_000, 3_000)):
        with np.errstate(invalid="raise", divide="raise"):
            run = world(
                {"name": selector, **NEEDS.get(selector, {"count": 2})},
                devices=FREE.get(devices, {"power": devices}),
                learner=Scripted(work=work, scalars=losses),
                record={"energy_excess": True},
                radio={
                    "access": access,
                    **({"link": {"uplink_waterfall_db": 0.023}} if selector == "hungarian" else {}),
                },
            ).run()
        rows, excess_j = run.rows.of[DeviceRound], run.rows.further["energy_excess_j"]
        spent_j = sum(row.energy_tx_j + row.energy_compute_j for row in rows)
        assert len(run.rows.of[Round]) == len(excess_j) == 3
        assert all(value >= -OPTIMUM * spent_j for value in excess_j)
        assert None not in excess_j


@pytest.mark.parametrize("selector", DECIDERS)
def test_deciders_where_a_link_carries_nothing(selector: str) -> None:
    """A device at 1,900 m, where no bit arrives, gets an equal share if it takes part, and fails; others complete."""
    learner = Scripted(
        work=(1, 64_000, 100_000, 100_000),
        scalars={"loss_received": [2.0, 3.0, 1.0, 5.0], "update_norm": [1.0, 3.0, 2.0, 5.0]},
    )
    with np.errstate(invalid="raise", divide="raise", over="raise"):
        run = small_world(
            [*PLACES_M, 1900.0],
            policy=ROUNDS,
            cell={"radius_m": 2000.0},
            rules={"selector": {"name": selector, **NEEDS.get(selector, {}), "count": 4}},
            learner=learner,
            record={"energy_excess": True},
            radio={
                "propagation": {"shadowing": "spatial", "line_of_sight": "never"},
                "link": {"rates": "cqi"},
                "monitoring": {"t310_s": 1.0, "t311_s": 0.0, "gain_reading": "interval"},
                "budget": {"noise_figure_db": 9.0},
                **({"link": {"uplink_waterfall_db": 0.023}} if selector == "hungarian" else {}),
            },
        ).run()
    rows = run.rows.of[DeviceRound]
    assert {row.outcome for row in rows if row.device < 3} <= {"completed", "lost_uplink"}
    assert {row.outcome for row in rows if row.device == 3} <= {"failed_downlink", "failed_uplink"}
    assert all(value is None or np.isfinite(value) for value in run.rows.further["energy_excess_j"])
