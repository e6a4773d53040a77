"""Check the contracts of the engine's components: selectors, servers, sessions, churn, power, mobility, ..."""

import itertools
import math
from dataclasses import replace
from typing import Any

import numpy as np

from edgefl.channel.geometry import sample_ring
from edgefl.engine.air.links import DIRECTIONS
from edgefl.engine.backgrounds import Background
from edgefl.engine.churn import Churn
from edgefl.engine.power_models import Equipment, PowerModel
from edgefl.engine.selectors import Candidates, Decider, Selector
from edgefl.engine.servers import ServerPolicy, ServerState
from edgefl.engine.sessions import SessionPolicy, SessionState
from edgefl.mobility import Mobility, Movement
from edgefl.places.areas import Disc, Places
from edgefl.rng import Streams
from edgefl.testing.conformance import must, must_be_shaped, must_repeat, pure, same
from edgefl.testing.decider_contract import deciders

DEVICES = 4
START_S, ROUNDS = 5000.0, 8  # number of rounds in a checked session of given duration
SWITCHES = 200  # number of switching times checked for each device
STEPS = 50  # number of changes of a load that are checked
RADIUS_M, MIN_DISTANCE_M = 100.0, 10.0


def selectors(selector: Selector) -> None:
    """Check that selected ids are sorted, distinct, present, as many as requested, and depend on arguments only."""
    if isinstance(selector, Decider):
        deciders(selector)
        return
    rng = np.random.default_rng(0)
    for turn in range(40):
        present = int(rng.integers(1, 12))
        ids = np.sort(rng.choice(50, present, replace=False)).tolist()
        last = rng.permutation(present + 1)[:present].astype(float)
        candidates = Candidates(ids, rng.normal(-90.0, 10.0, present), turn, last)
        wanted = selector.wanted(present)
        must(1 <= wanted <= present, f"wanted({present}) is {wanted}: return 1 to {present}")
        # over-selection requests more devices than `wanted` returns, at most all present devices
        for number in range(wanted, present + 1):
            chosen = pure(
                "select()",
                selector.select,
                candidates,
                number,
                np.random.default_rng(turn),
                remedy="draw from the given rng, and keep no state",
            )
            must(hasattr(chosen, "__len__"), f"select() returned {chosen!r:.40}: return a list of ids")
            must(
                len(chosen) == number,
                f"select() returned {len(chosen)} of {present} devices, not the {number} requested",
            )
            must(
                list(chosen) == sorted(set(chosen)),
                f"select() returned {chosen}: return every id once, in ascending order",
            )
            must(set(chosen) <= set(ids), f"select() returned {chosen}: choose among candidates.ids {ids}")


def servers(policy: ServerPolicy) -> None:
    """Check that a server dispatches devices to free places, aggregates only arrived updates, and never stalls."""
    tiers = policy.tiers([1.0, 3.0, 2.0, 2.0])
    must(not tiers or len(tiers) == 4, f"tiers() returned {tiers} for 4 devices: return 4 tiers, or none")
    factors = policy.learning.factors(range(DEVICES)) if policy.learning else []
    must(all(factor > 0 for factor in factors), f"learning.factors() returned {factors}: they must be > 0")
    for places, working, arrived in itertools.product(range(1, DEVICES), range(DEVICES), range(3 * DEVICES)):
        for now_s in (START_S, START_S + 1.0, 1e12):
            state = ServerState(places, working, arrived, START_S, now_s)
            room, ready = policy.room(state), policy.ready(state)
            must(room >= 0, f"room({state}) is {room}: return 0 or more")
            must(0 <= ready <= arrived, f"ready({state}) is {ready}: return 0 to {arrived} updates")
            must(
                (room, ready) == (policy.room(state), policy.ready(state)),
                f"two calls with {state} returned different values: keep no state",
            )
    must(
        policy.room(ServerState(1, 0, 0, START_S, START_S)) >= 1,
        "room() is 0 in an idle cell, so no device ever begins: return at least 1",
    )
    look_s = policy.looks_s(START_S)
    must(look_s > START_S, f"looks_s({START_S}) is {look_s}: return a later time, or inf")


def sessions(policy: SessionPolicy) -> None:
    """Check that every session ends with a reason, after `longest` rounds or at `until_s` at the latest."""
    longest, until_s = policy.longest, policy.until_s(START_S)
    must(longest is None or longest >= 1, f"longest is {longest}: a session has at least one round")
    must(until_s > START_S, f"until_s({START_S}) is {until_s}: a session ends later than it begins")
    must(
        longest is not None or until_s < math.inf,
        "longest is None and until_s() is inf: bound the length of a session by one or the other",
    )
    must(policy.report_bits >= 0, f"report_bits is {policy.report_bits}: it must be at least 0")
    rounds_s = 1.0 if until_s == math.inf else (until_s - START_S) / ROUNDS
    members = frozenset(range(DEVICES))
    nobody = frozenset[int]()
    for now, starved in (
        (members, False),
        (frozenset({0}), False),
        (members | {DEVICES}, False),
        (nobody, True),
    ):
        for slope in (0.0, 0.5, -0.05):
            begun = SessionState(0, members, now, time_s=START_S, start_s=START_S, seen=(nobody,))
            _check_session(policy, begun, rounds_s, slope, starved)


def _check_session(
    policy: SessionPolicy, state: SessionState, rounds_s: float, slope: float, starved: bool
) -> None:
    """Follow a session to its end.

    Args:
        rounds_s: time of a round. slope: by which reported losses grow from round to round.
        starved: whether no round changes the model.
    """
    longest, until_s = policy.longest, policy.until_s(START_S)
    reason = None
    while reason is None:
        must(
            (longest is None or state.rounds < longest) and state.time_s < until_s,
            f"a session continues after {state.rounds} rounds and {state.time_s - START_S:g} s: it "
            f"must end by `longest` {longest} or `until_s`",
        )
        share = policy.progress(state)
        must(
            0 <= share < 1,
            f"progress() returned {share} before round {state.rounds + 1}: return a number in [0, 1)",
        )
        losses, rounds = state.losses, state.rounds + 1
        if policy.report_bits:
            losses += (max(0.0, 2.0 + slope * rounds),)
        state = replace(
            state,
            rounds=rounds,
            losses=losses,
            unchanged=rounds if starved else 0,
            time_s=min(START_S + rounds * rounds_s, until_s),
            validated=(*state.validated, 0.5 - slope / rounds) if policy.asks_validation else (),
        )
        reason = policy.reason_to_end(state)
        again = policy.reason_to_end(state)
        must_repeat("reason_to_end()", reason, again, "keep no state between calls")
        must(
            reason is None or (isinstance(reason, str) and reason),
            f"reason_to_end() returned {reason!r}: return a word for the column `reason`, or None",
        )


def churn(model: Churn) -> None:
    """Check that switching times ascend, depend only on device and seed, and that each session has a member."""
    for device in range(DEVICES):
        times = _switches(model, device)
        must(
            all(math.isfinite(time_s) and time_s >= 0 for time_s in times),
            f"switches() of device {device} yielded {times[:5]} ...: yield finite times >= 0, and then stop",
        )
        must(
            all(a < b for a, b in itertools.pairwise(times)),
            f"switches() of device {device} yielded {times[:5]} ...: times must ascend",
        )
        must(
            times == _switches(model, device),
            "switches() depends on earlier calls: draw from streams(..., device) only, and keep no state",
        )
    for session in range(1, 6):
        members = model.members(session)
        must(
            members is None or len(members) > 0,
            f"members({session}) is empty: name at least one device, or return None for all",
        )


def _switches(model: Churn, device: int) -> list[float]:
    return list(itertools.islice(model.switches(device, Streams(3)), SWITCHES))


def power_models(model: PowerModel) -> None:
    """Check that powers and times are finite and not negative, and that a higher transmit power never draws less."""
    before_w = 0.0
    for transmit_w in (1e-3, 0.2, 2.0):
        equipment = Equipment(transmit_w, 0.4, 0.1, 0.05)
        draws = pure("draws()", model.draws, equipment, remedy="keep no state, and draw no random numbers")
        values = (draws.receive_w, draws.wait_w, draws.receive_j_bit, draws.send_j_bit)
        must(
            all(0 <= value < math.inf for value in (*values, *itertools.chain(*draws.tail))),
            f"draws() returned {draws}: return finite powers and times >= 0",
        )
        send_w = draws.send_w + draws.amplifier_w
        must(
            before_w <= send_w < math.inf,
            f"sending {transmit_w} W draws {send_w} W, but a lower power drew {before_w} W: never draw less",
        )
        must(draws.amplifier_w >= 0, f"amplifier_w is {draws.amplifier_w}: return a power of at least 0 W")
        before_w = send_w


def backgrounds(model: Background) -> None:
    """Check that a background load is a share of time, depends on cell and time only, and changes at stated times."""
    cells = (0, 1)
    model.check(cells)
    for direction, cell in itertools.product(DIRECTIONS, cells):
        time_s = 0.0
        for _ in range(STEPS):
            load, until_s = model.load(direction, cell, time_s)
            where = f"load({direction!r}, {cell}, {time_s})"
            must(0 <= load <= 1, f"{where} returned {load}: return a share of time, 0 to 1")
            must(until_s > time_s, f"{where} holds until {until_s}: return a later time, or inf")
            middle_s = (time_s + until_s) / 2 if until_s < math.inf else time_s + 1e6
            model.load(direction, 1 - cell, 2 * middle_s)
            must(
                model.load(direction, cell, middle_s) == (load, until_s),
                f"load() is not {load} at {middle_s} s, and {where} holds until {until_s}: keep no state, and"
                " return the time of the next change",
            )
            if until_s == math.inf:
                break
            time_s = until_s


def mobility(model: Mobility) -> None:
    """Check that a device's path depends only on time, device and seed, not on other devices or earlier calls."""
    names = sorted({name for _, name in model.area_names()})
    # areas in a row, 50 m apart; if there are several, the last area is beyond the cell
    model = model.within(
        Places({name: Disc(centre_m=(50.0 * i, 20.0), radius_m=30.0) for i, name in enumerate(names)})
    )
    area_m = model.area_radius_m(RADIUS_M)
    must(area_m > 0, f"area_radius_m({RADIUS_M}) is {area_m}: devices are placed in a disc of this radius")
    reach_m = model.reach_m(RADIUS_M)
    must(reach_m >= area_m, f"reach_m({RADIUS_M}) is {reach_m}: it must include area_radius_m, {area_m}")
    movement, times_s = _start(model, DEVICES), [0.0, 31.4, 2.7, 180.0, 31.4, 0.0]
    for time_s in times_s:
        here_m = movement.positions_m(time_s)
        must_be_shaped("positions_m()", here_m, (DEVICES, 2), "return [devices, 2] metres")
        must(
            not np.isinf(here_m).any(), "positions_m() returned inf: the position of an absent device is nan"
        )
        kept_m = here_m.copy()
        movement.positions_m(time_s + 1.0)
        must(same(kept_m, here_m), "positions_m() overwrote the array of an earlier call: return a new array")
        must(
            same(here_m, _start(model, DEVICES).positions_m(time_s)),
            "positions_m() depends on earlier calls, or on something besides the seed: draw all that a path needs "
            'from streams("mobility", ..., device)',
        )
        must(
            same(here_m[:2], _start(model, 2).positions_m(time_s)),
            "a device's path depends on the number of devices: draw it from the device's own stream",
        )
        must(
            movement.moves or same(here_m, movement.positions_m(0.0)),
            "positions change although moves is False: set moves to True, or devices cross cell edges unnoticed",
        )
    speeds = movement.doppler_speeds_m_s()
    must(
        speeds.shape == (DEVICES,) and np.all(np.isfinite(speeds) & (speeds >= 0)),
        f"doppler_speeds_m_s() returned {speeds}: return [devices] finite speeds >= 0",
    )


def _start(model: Mobility, devices: int) -> Movement:
    ring: Any = {"inner_radius_m": MIN_DISTANCE_M, "outer_radius_m": model.area_radius_m(RADIUS_M)}
    positions_m = sample_ring(np.random.default_rng(0), DEVICES, **ring)[:devices]
    given_m = positions_m.copy()
    movement = model.start(given_m, cell_radius_m=RADIUS_M, min_distance_m=MIN_DISTANCE_M, streams=Streams(1))
    must(same(given_m, positions_m), "start() modified positions_m in place: work on a copy")
    return movement
