"""Write the notes at a run's end, mainly on settings of the scenario that never took effect.

Each note is a function of sections of the scenario and of counts of the rows that the run has written.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from edgefl.channel.units import dbm_to_watt
from edgefl.config import registry
from edgefl.engine.air.coverage import remedies
from edgefl.engine.air.efficiency import Efficiency
from edgefl.engine.air.gains import LargeScaleGains
from edgefl.engine.air.presets import in_fdd_band
from edgefl.engine.air.radio import Radio
from edgefl.engine.air.radio_sections import LinkSettings
from edgefl.engine.air.radio_settings import RadioSettings
from edgefl.engine.cells.network import Network
from edgefl.engine.churn.always_on import AlwaysOn
from edgefl.engine.churn.client_pattern import ClientPattern
from edgefl.engine.devices.fleet import Fleet
from edgefl.engine.federation.ending import Stopped
from edgefl.engine.power_models.journal import JournalPower
from edgefl.engine.records import EventName
from edgefl.engine.servers import dropped
from edgefl.engine.sessions import BoundedPolicy, SessionPolicy
from edgefl.engine.settings import RoundSettings
from edgefl.learning.settings import LearningSettings
from edgefl.mobility import Mobility
from edgefl.mobility.static import Static
from edgefl.run.counts import MATTERS, Counts, explosions
from edgefl.run.coverage_notes import without_coverage
from edgefl.run.handover_notes import more_handovers_than_borders
from edgefl.run.whereabouts import first_move_s, short_recordings, unmoving
from edgefl.scenario import rates
from edgefl.scenario.own_sections import OwnSections
from edgefl.scenario.world import World

# 256QAM at code rate 948/1024 on one layer: TS 38.214, Table 5.1.3.1-2, MCS index 27
NR_EFFICIENCY = 8 * 948 / 1024
CROSSINGS = (EventName.ARRIVAL, EventName.DEPARTURE, EventName.HANDOVER)


def of_run(
    world: World, radio: Radio, network: Network, counts: Counts, *, simulated_s: float, stopped: bool = False
) -> Iterator[str]:
    """Yield a sentence for each fact that readers of the results must know."""
    settings, kinds = world.extent.radio, world.devices.kinds()
    reach = remedies(world.layout, world.fleet)
    there = sum(len(network.out_of_coverage(cell) or ()) for cell in world.served)
    each = [(one, counts.of[name]) for name, one in world.federations.items()]
    yield from radio.air.regime.notes
    yield from _of_gains(world.gains, counts)
    for one, own in each:
        yield from one.named(_never_aggregated(one.rounds, own, there, reach))
        if own.not_taken > MATTERS * own.completed:
            yield from one.named(dropped(one.rounds.server, own.not_taken, own.completed))
    yield from _classes_without_updates(world.fleet, counts)
    batteries = sum(charge is not None for charge in network.power.charges())
    yield from _empty_batteries(len(counts.emptied), batteries)
    yield from _churn_that_never_acted(kinds, counts, simulated_s, stopped=stopped)
    if world.may_cross:
        if first_move_s(world.movement, simulated_s) < simulated_s:
            yield from _movement_that_never_acted(kinds, counts, simulated_s, stopped=stopped)
        elif not any(unmoving(world)):  # otherwise the note came before the run
            yield from unmoving(world, simulated_s)
    if network.borders:
        handovers = counts.events[EventName.HANDOVER]
        yield from more_handovers_than_borders(world, handovers, network.borders.crossed)
    yield from short_recordings(world, simulated_s, told_s=world.sections.known_end_s)
    for one, own in each:
        yield from one.named(_policy_that_never_acted(one.sessions, own))
    for one, own in each:
        yield from one.named(_warm_start_that_never_acted(one.learning, one.sessions.count, own))
    for one, own in each:
        yield from one.named(_rate_of_zero(one.learning, own))
    yield from without_coverage(counts, world.count, reach)
    yield from explosions(counts.extremes, [one for one, _ in each], settings)
    yield from _radiated_power_only(settings, kinds)
    if world.measured is not None:
        return
    yield from _two_bands_at_once(settings)
    yield from _beyond_nr(radio.efficiency, settings.link)


def of_stop(several: Mapping[str, OwnSections], stopped: Mapping[Any, Stopped | None]) -> Iterator[str]:
    """Yield a sentence for each federation with `stop`: which scores ended its servers, and when.

    Args:
        stopped: cell and federation of each server -> how scores ended its run, or None if they did not.
    """
    for name, one in several.items():
        own = [how for (_, whose), how in stopped.items() if whose == name]
        if one.stop is not None and own:
            yield from one.named([_of_stop(own)])


def _of_stop(servers: Sequence[Stopped | None]) -> str:
    by_reason: dict[str, list[Stopped]] = defaultdict(list)
    for how in filter(None, servers):
        by_reason[how.reason].append(how)
    if len(servers) == 1:
        for reason, (how,) in by_reason.items():
            return f"{reason} (round {how.round:,} of session {how.session:,}, after {_seconds(how.time_s)})"
        return "no score ended it"
    last_s = {reason: max(how.time_s for how in some) for reason, some in by_reason.items()}
    told = [
        f"{r} in {len(some)} cell{'s' * (len(some) != 1)}, in the last after {_seconds(last_s[r])}"
        for r, some in by_reason.items()
    ]
    if left := sum(how is None for how in servers):
        told.append(f"no score in {left} of {len(servers)} cells")
    return "; ".join(told)


def _never_aggregated(rules: RoundSettings, counts: Counts, there: int, reach: str) -> Iterator[str]:
    """Note a federation that never aggregated an update.

    Args:
        there: number of devices that are in a cell with a server at the run's end, but without a link.
        reach: what gives more devices a link.
    """
    least = rules.min_updates
    if not counts.rounds:
        where = "was in a cell with a server"
        out = f" with a link {where}, but {there:,} without one; {reach} reach more devices"
        yield f"no round ever took place: no device{out if there else f' {where}'}"
    without = sorted(cell for cell in counts.rounds if not counts.models[cell])
    if not without:
        return
    *others, last = map(str, without)
    named = f"cells {', '.join(others)} and {last}" if others else f"cell {last}"
    where = "" if len(without) == len(counts.rounds) else f" in {named}"
    why = f"{counts.completed:,} of {counts.participants:,} participations were completed"
    needed = f", and a round needs {least} updates (rounds.min_updates)" if least > 1 else ""
    remedies = [
        *["a longer rounds.deadline_s lets more updates arrive"] * (rules.deadline_s is not None),
        *["a lower rounds.min_updates requires fewer updates"] * (least > 1 and counts.completed > 0),
    ]
    in_all = sum(counts.rounds[cell] for cell in without)
    rounds = f"{in_all:,} round{'s' * (in_all != 1)}"
    told = f"no update was ever aggregated{where} in {rounds}: overall, {why}{needed}"
    yield "; ".join([told, ", and ".join(remedies)]) if remedies else told


def _classes_without_updates(fleet: Fleet, counts: Counts) -> Iterator[str]:
    """Note classes of devices that took part without a single update that arrived, if others arrived."""
    if not counts.delivered:
        return
    chosen, delivered = (Counter(fleet.of[sorted(ids)].tolist()) for ids in (counts.chosen, counts.delivered))
    for number, name in enumerate(fleet.names):
        if chosen[number] and not delivered[number]:
            yield (
                f"devices of class {name} took part ({chosen[number]:,} of them), but none of their updates ever"
                " arrived, so nothing was learned from their data: the column outcome of devices.csv says why"
            )


def _empty_batteries(emptied: int, batteries: int) -> Iterator[str]:
    """Note how many batteries ran empty, since this lowers energy and participation."""
    if emptied:
        yield (
            f"{emptied:,} of {batteries:,} batteries ran empty (battery_empty in events.csv): a device without charge"
            " takes no part and uses no energy"
        )


def _churn_that_never_acted(
    kinds: Sequence[Any], counts: Counts, simulated_s: float, *, stopped: bool
) -> Iterator[str]:
    """Note churn that never switched a device, or an on-off cycle longer than the run."""
    switched = counts.events[EventName.SWITCHED_ON] + counts.events[EventName.SWITCHED_OFF]
    never = "" if switched else "no device was ever switched on or off"
    for churn in _distinct(kind.churn for kind in kinds):
        if not isinstance(churn, AlwaysOn | ClientPattern):
            name = registry.name_of("churn", churn)
            yield from _rule(
                f"devices.churn {name}", never, churn.period_s, simulated_s, "cycle", "always_on", stopped
            )


def _movement_that_never_acted(
    kinds: Sequence[Any], counts: Counts, simulated_s: float, *, stopped: bool
) -> Iterator[str]:
    """Note movement in which no device crossed a cell's edge, or a simulated day longer than the run."""
    crossed = sum(counts.events[name] for name in CROSSINGS)
    never = "" if crossed else "no device ever entered or left a cell"
    # give a note only once, even if several classes have the same mobility
    said = dict.fromkeys(
        note
        for mobility in _distinct(kind.mobility for kind in kinds)
        if not isinstance(mobility, Static)
        for note in _of_movement(mobility, never, simulated_s, stopped)
    )
    yield from said


def _of_movement(mobility: Mobility, never: str, simulated_s: float, stopped: bool) -> Iterator[str]:
    day_s = getattr(mobility, "day_s", mobility.period_s)
    unit = "day" if mobility.period_s == day_s else "week"
    name = registry.name_of("mobility", mobility)
    yield from _rule(
        f"devices.mobility {name}", never, mobility.period_s, simulated_s, unit, "static", stopped
    )


def _distinct(components: Iterable[Any]) -> list[Any]:
    """Return the components of all classes of devices, each distinct component once."""
    distinct: list[Any] = []
    for component in components:
        if component not in distinct:
            distinct.append(component)
    return distinct


def _rule(
    name: str, never: str, period_s: float | None, simulated_s: float, unit: str, instead: str, stopped: bool
) -> Iterator[str]:
    covers = f"the run lasts {_seconds(simulated_s)}{', ended by `stop`' * stopped}"
    if period_s is not None and period_s > simulated_s:
        covers = f"{covers}, less than a {unit} of {_seconds(period_s)}"
        never = f"{never}; " if never else ""
        longer = "a later end (stop)" if stopped else "a longer duration_s or more sessions"
        yield f"{name}: {never}{covers}; {longer} would cover a {unit}"
    elif never:
        yield (
            f"{name}: {never}, and {covers}; if that is intended, use {instead}; otherwise spread the rounds "
            f"(rounds.every_s) or {'end the run later (stop)' if stopped else 'add rounds'}"
        )


def _policy_that_never_acted(policy: SessionPolicy, counts: Counts) -> Iterator[str]:
    """Note a session policy that never ended a session before max_rounds."""
    if isinstance(policy, BoundedPolicy) and set(+counts.ends) == {"max_rounds"}:
        name = registry.name_of("sessions", policy)
        yield (
            f"sessions {name}: the policy ended no session before max_rounds ({policy.max_rounds:,}; sessions: "
            f"{counts.ends.total():,}); lower the policy's threshold, or raise max_rounds"
        )


def _warm_start_that_never_acted(
    learning: LearningSettings | None, sessions: int | None, counts: Counts
) -> Iterator[str]:
    """Note a warm start that never had a saved model, although updates were aggregated."""
    if learning is None or counts.warm or not any(counts.models.values()):
        return
    name, pilots = registry.name_of("warm_starts", learning.warm_start), learning.pilot_sessions
    # there is no warm start, or the note was given before the run
    if name == "previous" or pilots >= (sessions or math.inf):
        return
    why = "no two sessions after the pilot sessions had an update of a probe round"
    if counts.sessions < pilots + 2:
        why = (
            f"the first that can do so is session {pilots + 2} (learning.pilot_sessions: {pilots}), but the "
        )
        if counts.sessions == sessions:
            why += f"last is session {counts.sessions}; add sessions"
        else:  # `stop`, the duration or the batteries ended the run
            why += f"run ended in session {counts.sessions}"
    yield f"learning.warm_start {name}: no session began with saved models; {why}"


def _rate_of_zero(learning: LearningSettings | None, counts: Counts) -> Iterator[str]:
    """Note rounds that learned nothing because the schedule had reached a learning rate of 0.

    A run that is certain to have such rounds is refused.
    """
    most = max(counts.trained.values(), default=0)
    if learning is None or not most:
        return

    def is_zero(number: int) -> bool:
        return not rates.share(learning, min(number, counts.longest), counts.longest, of_run=number)

    if is_zero(most):
        first = next(number for number in range(1, most + 1) if is_zero(number))
        yield f"{rates.zero_from(learning, first)}; a cell had {most:,} rounds: {rates.remedy(learning)}"


def _beyond_nr(efficiency: Efficiency, link: LinkSettings) -> Iterator[str]:
    """Note median rates above the highest that 5G's modulation and coding allow on the link's layers."""
    most = {"downlink": link.downlink_layers * NR_EFFICIENCY, "uplink": NR_EFFICIENCY}
    medians = {direction: efficiency.median(direction) for direction in ("downlink", "uplink")}
    above = [f"{value:.1f} bit/s/Hz in the {name}" for name, value in medians.items() if value > most[name]]
    if above:
        yield (
            f"transfers carry more than 5G can: the median rate is {' and '.join(above)}, but one layer of "
            f"NR carries at most {NR_EFFICIENCY:.1f} (256QAM, TS 38.214, Table 5.1.3.1-2); "
            f"{'' if link.max_efficiency is None else 'a lower '}radio.link.max_efficiency caps it"
        )


def _radiated_power_only(radio: RadioSettings, kinds: Sequence[Any]) -> Iterator[str]:
    """Note that a realistic radio is combined with a power model that counts radiated power only, not circuits."""
    radiated = [
        isinstance(kind.power, JournalPower) and kind.pa_efficiency == 1 and not kind.uplink_circuit_power_w
        for kind in kinds
    ]
    if radio.preset == "nr" and any(radiated):
        watts = [
            dbm_to_watt(kind.transmit_power_dbm) for kind, one in zip(kinds, radiated, strict=True) if one
        ]
        yield (
            f"devices.power journal counts only radiated power: {max(watts):.2g} W while sending, whereas a "
            "phone draws about 4 W; the power models tr38840 and phone_5g count what a phone draws"
        )


def _two_bands_at_once(radio: RadioSettings) -> Iterator[str]:
    """Note a band that is used in both directions simultaneously at a frequency where bands are TDD."""
    if radio.preset == "nr" and radio.tdd is None and not in_fdd_band(radio.carrier_hz):
        yield (
            f"radio.tdd none: {radio.bandwidth_hz / 1e6:g} MHz carry both directions at once, but bands at "
            f"{radio.carrier_hz / 1e9:g} GHz are TDD; leave radio.tdd out, or set a frame"
        )


def _seconds(value: float) -> str:
    """Format a time as the run's last line does, 0.6775 as `678 ms`; longer times in seconds, such as `86,400 s`."""
    number, unit = (value / 1e-3, "ms") if 0 < value < 1 else (value, "s")
    if number >= 100:
        return f"{number:,.0f} {unit}"
    decimals = 2 - math.floor(math.log10(number)) if number > 0 else 0
    return f"{round(number, decimals):g} {unit}"


def _of_gains(gains: LargeScaleGains, counts: Counts) -> Iterator[str]:
    """Note links shorter or longer than the distances for which the path-loss model is defined."""
    if gains.clamped > MATTERS * counts.participants:
        yield (
            f"{gains.clamped} times a device was closer than cell.min_distance_m, and the path loss at that"
            " distance was used"
        )
    if gains.beyond:
        yield f"{gains.beyond} times a device was beyond the range of the path loss; the loss at that range was used"
