"""Test that a planned round equals the round run by its processes, to the last bit."""

from collections.abc import Sequence
from typing import Any
from unittest import mock

import pytest
from hypothesis import event, example, given, reject, settings
from hypothesis import strategies as st

from edgefl.engine.air.presets import NR
from edgefl.engine.cells.network import Network
from edgefl.engine.federation import plan, rounds
from edgefl.engine.records import DeviceRound, LedgerRow, Round
from edgefl.testing import Scripted, SmallWorld, small_world

MOST = 5  # number of devices
SLOW_M_S, FAST_M_S = 1.0, 30.0

work = st.tuples(
    st.integers(0, 20),  # iterations
    st.one_of(st.just(0), st.integers(1, 3_000)),  # samples
    st.one_of(st.just(0), st.integers(1, 4_000_000)),  # bits down
    st.one_of(st.just(0), st.integers(1, 4_000_000)),  # bits up
)
radio = st.fixed_dictionaries(
    {
        "scheduler": st.sampled_from(["equal_share", "min_max_latency"]),
        "fidelity": st.sampled_from(["slot", "renewal", "auto"]),
        "tdd": st.sampled_from([None, {}, {"pattern": "DSUUD"}]),
        "slot_s": st.sampled_from([0.5e-3, 0.125e-3, 1e-3]),
        "propagation": st.fixed_dictionaries({"shadowing_std_db": st.sampled_from([0.0, 4.0])}),
        "link": st.fixed_dictionaries({"uplink_waterfall_db": st.sampled_from([None, 20.0])}),
        "access": st.sampled_from([None, {}, NR["radio.access"]]),
    }
)


@st.composite
def classes(draw: st.DrawFn) -> dict[str, Any]:
    """Draw keys of `devices`: a radio's states, or two classes that differ in all that affects a round."""
    if not draw(st.booleans()):
        return {"power": {"name": "tr38840", "release_s": draw(st.sampled_from([0.0, 0.05, 10.0]))}}
    own = {
        "clock_hz": draw(st.floats(1e8, 3e9)),
        "flops_per_cycle": draw(st.floats(0.5, 32.0)),
        "capacitance": draw(st.floats(0.0, 1e-27)),
        "transmit_power_dbm": draw(st.floats(-10.0, 30.0)),
        "circuit_power_w": draw(st.floats(0.0, 1.0)),
        "pa_efficiency": draw(st.floats(0.1, 1.0)),
        "uplink_circuit_power_w": draw(st.floats(0.0, 1.0)),
        "ut_height_m": draw(st.floats(1.2, 9.0)),
        "indoor_share": draw(st.sampled_from([0.0, 0.5, 1.0])),
        "compute_jitter": draw(st.sampled_from([None, 0.3])),
    }
    return {"classes": {"first": {"count": 1, **own}, "others": {}}, "classes_by": "ids"}


def worked(
    distances_m: list[float], works: Sequence[Any], planned: bool, seed: int, **options: Any
) -> SmallWorld:
    """Run two rounds, so that the second begins at a time that is not a multiple of a slot."""
    with (
        mock.patch.object(Network, "still", planned),
        mock.patch.object(rounds, "planned_parts", wraps=rounds.planned_parts) as plans,
    ):
        small = small_world(
            list(distances_m),
            learner=Scripted(of=dict(enumerate(works)), flops_per_sample=1.7e6),
            policy={"name": "schedule", "count": 1, "rounds": 2},
            seed=seed,
            **options,
        ).run()
        if planned and not plans.called:  # there is no plan if a link is out of sync
            reject()
        assert plans.called == planned
    simulation = small.simulation
    small.rows.write(*simulation.ledger.rows(simulation.network.power.running_s(), 0.01))
    return small


def expect_alike(one: SmallWorld, other: SmallWorld) -> None:
    """Check by repr that both worlds are equal to the last bit, with equal types."""
    for table in (DeviceRound, Round, LedgerRow):
        assert list(map(repr, one.rows.of[table])) == list(map(repr, other.rows.of[table]))
    assert repr(one.env.now) == repr(other.env.now)


@given(
    distances_m=st.lists(st.floats(10.0, 250.0), min_size=1, max_size=MOST),
    works=st.lists(work, min_size=MOST, max_size=MOST),
    radio=radio,
    doppler_speed_m_s=st.sampled_from([0.0, SLOW_M_S, FAST_M_S]),
    seed=st.integers(0, 2**32 - 1),
    devices=classes(),
)
@example(  # the second round is longer than the run before it, so the clock cannot reach its end in one wait
    distances_m=[10.0, 10.0, 10.0, 21.0, 37.0],
    works=[*[(0, 0, 0, 0)] * 3, (0, 187, 53858, 215409), (0, 0, 1, 0)],
    radio={
        "scheduler": "equal_share",
        "fidelity": "renewal",
        "tdd": {},
        "slot_s": 0.125e-3,
        "propagation": {"shadowing_std_db": 4.0},
    },
    doppler_speed_m_s=1.0,
    seed=1557595,
    devices={},
)
@example(  # in round 1, device 1 need not wait for other devices
    distances_m=[10.0, 238.0, 10.0, 10.0, 10.0],
    works=[(0, 0, 0, 0), (0, 137, 0, 2946847), (0, 0, 0, 0), (0, 0, 0, 0), (0, 0, 0, 1)],
    radio={
        "scheduler": "equal_share",
        "fidelity": "slot",
        "tdd": {},
        "slot_s": 1e-3,
        "propagation": {"shadowing_std_db": 0.0},
        "link": {"uplink_waterfall_db": None},
        "access": None,
    },
    doppler_speed_m_s=0.0,
    seed=0,
    devices={"power": {"name": "tr38840", "release_s": 0.05}},
)
@settings(max_examples=200)
def test_a_plan_is_what_the_processes_return(
    distances_m: list[float],
    works: list[Any],
    radio: dict[str, Any],
    doppler_speed_m_s: float,
    seed: int,
    devices: dict[str, Any],
) -> None:
    if len(distances_m) == 1:
        devices = {}  # a class needs at least one device
    event(f"classes: {bool(devices)}")
    event(f"{radio['scheduler']}, {radio['fidelity']}, {'TDD' if radio['tdd'] is not None else 'intervals'}")
    options = {"radio": radio, "doppler_speed_m_s": doppler_speed_m_s, "devices": devices}
    expect_alike(*(worked(distances_m, works, planned, seed, **options) for planned in (True, False)))


shared = st.fixed_dictionaries(
    {
        "sharing": st.just("dynamic"),
        "scheduler": st.sampled_from(["equal_share", "proportional_fair", "round_robin"]),
        "tdd": st.sampled_from([None, {}, {"pattern": "DSUUD"}]),
        "slot_s": st.sampled_from([0.5e-3, 0.125e-3, 1e-3]),
        "budget": st.sampled_from([{"power_over_share": of} for of in ("full", "per_resource_block")]),
        "link": st.sampled_from([{"rates": "shannon"}, {"rates": "cqi"}]),
        "monitoring": st.just({"t310_s": 1.0}),
        "access": st.sampled_from([None, {}, NR["radio.access"]]),
    }
)


@given(
    distances_m=st.lists(st.floats(10.0, 60.0), min_size=1, max_size=MOST),
    works=st.lists(
        st.tuples(
            st.integers(0, 20), st.sampled_from([0, 100, 300]), *[st.sampled_from([1, 40_000, 900_000])] * 2
        ),
        min_size=MOST,
        max_size=MOST,
    ),
    radio=shared,
    doppler_speed_m_s=st.sampled_from([0.0, SLOW_M_S, FAST_M_S]),
    seed=st.integers(0, 2**32 - 1),
)
@settings(max_examples=25)
def test_a_plan_in_a_dynamic_band_is_what_the_processes_return(
    distances_m: list[float], works: list[Any], radio: dict[str, Any], doppler_speed_m_s: float, seed: int
) -> None:
    """Plans agree with processes if many devices begin and end in the same slots, and take turns at spare blocks."""
    options = {"radio": radio, "doppler_speed_m_s": doppler_speed_m_s}
    expect_alike(*(worked(distances_m, works, planned, seed, **options) for planned in (True, False)))


@pytest.mark.parametrize("at_once", [1, 2, 3])
@pytest.mark.parametrize("taps", [1, 2])
def test_a_large_round_takes_some_devices_after_the_others(at_once: int, taps: int) -> None:
    """Results equal the processes' results to the last bit, and no link's fading stays in memory."""
    options: dict[str, Any] = {
        "radio": {"preset": "journal", "fidelity": "slot", "link": {"frequency_taps": taps}}
    }
    works = [(1, 100 * id_, 40_000 * id_, 90_000) for id_ in range(MOST)]
    distances_m = [20.0 + 40.0 * id_ for id_ in range(MOST)]
    whole = worked(distances_m, works, True, 1, **options)
    with mock.patch.object(plan, "LINKS_AT_ONCE", at_once):
        pieces = worked(distances_m, works, True, 1, **options)
    expect_alike(whole, pieces)
    for small, held in ((whole, True), (pieces, False)):
        for id_ in range(MOST):
            link = small.simulation.radio.fading(id_, 0)
            assert any([*link._pages, getattr(link, "_powers", {})]) is held


@pytest.mark.parametrize(
    "options",
    [
        {"rules": {"deadline_s": 100.0}},
        {"rules": {"selector": {"name": "uniform", "count": 1}, "over_selection": 2.0}},
        {"radio": {"preset": "journal", "sharing": "dynamic", "tdd": {"pattern": "F"}}},
        {
            "radio": {"preset": "journal", "sharing": "dynamic"},
            "learner": Scripted(of={0: (1, 1, 0, 9), 1: (1, 1, 9, 9)}),
        },
        {"crossings_s": {0: [50.0]}},
        {"switches_s": [[0.0], [0.0]]},
        {"devices": {"battery_j": 100.0}},
    ],
    ids=lambda options: "-".join(options),
)
def test_what_can_be_disturbed_is_not_planned(options: dict[str, Any]) -> None:
    with mock.patch.object(rounds, "planned_parts", side_effect=AssertionError("planned")):
        small = small_world([50.0, 60.0], **options).run()
    assert len(small.rows.of[DeviceRound]) == 2
