"""Check the tables of any run: sums agree across tables, and events come in a possible order.

`check_run(directory)` checks a run directory's tables and returns one line per fault. It imports nothing of edgefl.

    python -m tests.tools.invariants runs/quickstart-seed100
"""

import math
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path

from tests.tools.cloud_books import cloud_keeps_its_books
from tests.tools.run_tables import Row, Tables, by, grouped, named, read, round_key, server_of

# Relative. Sums are taken in a different order here, which changes them by some 1e-16 per term.
SUM_TOLERANCE = 1e-9
METER_TOLERANCE = 1e-9  # relative to a battery's energy, which is summed in a different order
# Times have nine decimals.
TIME_DIGIT_S = 2e-9
# columns of rounds.csv that are sums over the participants
ENERGIES = ("energy_rx_j", "energy_tx_j", "energy_compute_j", "energy_tail_j", "energy_j")
SUMMED = ("downlink_bits", "uplink_bits", *ENERGIES)
STAGES = ("downlink", "compute", "uplink")
LEDGER = dict(zip(("receive_j", "transmit_j", "compute_j", "tail_j", "energy_j"), ENERGIES, strict=True))
LINK_EVENTS = ("radio_link_failure", "reestablished")
# energy in excess of the minimum at mean rates; with favourable fading, a round can use less than this minimum
SIGNED = {"energy_excess_j"}
# number of faults of one kind that are listed; more faults are only counted
TOLD = 5


def check_run(directory: str | Path) -> list[str]:
    """Check a run directory; return its faults.

    A run that has not ended is checked without its ledger, which is written last.
    """
    problems = []
    try:
        tables = read(Path(directory))
        for check in CHECKS:
            broken = list(check(tables))
            problems += broken[:TOLD]
            if len(broken) > TOLD:
                problems.append(f"... and {len(broken) - TOLD} more of {check.__name__.strip('_')}")
    except (OSError, ValueError, TypeError, KeyError) as error:
        problems.append(f"the tables cannot be read: {error!r}")
    return problems


def _differs(one: float, other: float) -> bool:
    return not math.isclose(one, other, rel_tol=SUM_TOLERANCE, abs_tol=1e-18)


def _last_end_s(part: Row) -> float:
    ends = [part[f"{stage}_end_s"] for stage in STAGES if part[f"{stage}_end_s"] is not None]
    return max(ends, default=part["downlink_start_s"])


def _taken(part: Row) -> bool:
    """Return whether an update arrived and was aggregated; if rounds overlap, aggregated updates have a staleness."""
    arrived: bool = part["outcome"] == "completed"
    return arrived and (part.get("dispatch") is None or part["staleness"] is not None)


# -- one row at a time --------------------------------------------------------------------------------


def _numbers(tables: Tables) -> Iterator[str]:
    """Check that every number is finite and not negative, except for columns that a learner adds."""
    own = {
        "loss",
        "accuracy",
        "loss_start",
        "accuracy_start",
        "device",
        "cell",
        "session",
        "round",
        "version",
    }
    own |= {"participants", "completed", "iterations", "from_cell"}
    for name in ("rounds", "devices", "events", "sessions", "ledger"):
        for line, row in enumerate(getattr(tables, name), start=2):
            for column, value in row.items():
                ours = column in own or column.endswith(("_s", "_j", "_bits", "_m"))
                fits = not isinstance(value, float) or (
                    math.isfinite(value) and (value >= 0 or column in SIGNED)
                )
                if ours and not fits:
                    yield f"{name}.csv, line {line}: {column} is {value}"


def _stages(tables: Tables) -> Iterator[str]:
    """Check that downlink, computing and uplink follow one another, and that stages not reached have no energy."""
    for line, part in enumerate(tables.devices, start=2):
        where = f"devices.csv, line {line} (device {part['device']:g}, {named(part)})"
        times = [part[f"{stage}_{end}_s"] for stage in STAGES for end in ("start", "end")]
        reached = [time_s is not None for time_s in times]
        if reached != sorted(reached, reverse=True) or sum(reached) % 2:
            yield f"{where}: an earlier stage is missing: {times}"
            continue
        # an uplink begins at a multiple of the slot, which may be rounded to just before the end of computing
        if any(
            b < a - 2 * math.ulp(a) for a, b in pairwise(time_s for time_s in times if time_s is not None)
        ):
            yield f"{where}: stages are not in order: {times}"
        last = STAGES[sum(reached) // 2 - 1]
        if part["outcome"] == "completed":
            if last != "uplink":
                yield f"{where}: completed without an uplink"
        elif not part["outcome"].endswith(f"_{last}"):
            yield f"{where}: {part['outcome']}, but its last stage was {last}"
        for stage, energy in zip(STAGES, ("energy_rx_j", "energy_compute_j", "energy_tx_j"), strict=True):
            if part[f"{stage}_start_s"] is None and part[energy]:
                yield f"{where}: {energy} is {part[energy]} without {stage}"
        if _differs(part["energy_j"], sum(part[name] for name in ENERGIES[:-1])):
            yield f"{where}: energy_j is not the sum of its four parts"


# -- books --------------------------------------------------------------------------------------------


def _rounds_sum_their_devices(tables: Tables) -> Iterator[str]:
    """Check that a row of rounds.csv is the sum of its rows of devices.csv, which lie within the round's time."""
    parts = tables.parts()
    for row in tables.rounds:
        mine = parts.pop(round_key(row), [])
        where = named(row)
        if not tables.has_parts(row):
            continue
        # if rounds overlap, a device that lost its update may begin again before the next model
        jobs = [(part["device"], part.get("dispatch")) for part in mine]
        if len(set(jobs)) < len(jobs):
            yield f"{where}: a device occurs twice: {sorted(jobs)}"
        done = [part for part in mine if part["outcome"] == "completed"]
        if (row["participants"], row["completed"]) != (len(mine), len(done)):
            yield (
                f"{where}: participants, completed are {row['participants']:g}, {row['completed']:g}, not "
                + (f"{len(mine)}, {len(done)}")
            )
        for name in SUMMED:
            if _differs(row[name], total := math.fsum(part[name] for part in mine)):
                yield f"{where}: {name} is {row[name]}, its devices' sum {total}"
        lost = math.fsum(part["energy_j"] for part in mine if not _taken(part))
        wasted = row["energy_wasted_j"]
        if _differs(wasted, lost) and _differs(wasted, row["energy_j"]):
            yield f"{where}: energy_wasted_j {wasted} is neither the energy of lost updates, {lost}, nor all energy"
        if abs(row["latency_s"] - (row["end_s"] - row["start_s"])) > 2 * TIME_DIGIT_S:
            yield f"{where}: latency_s is not end_s - start_s"
        rounding_s = max(TIME_DIGIT_S, 4 * math.ulp(row["end_s"]))  # a round may begin after decades
        for part in mine:
            late_s = _last_end_s(part) - row["end_s"]
            # an upload that is cut off before its first slot ends at the start of that slot
            early = part.get("dispatch") is None and part["downlink_start_s"] < row["start_s"] - rounding_s
            if early or late_s > tables.slot_s + rounding_s:
                yield f"{where}: device {part['device']:g} works outside the round, by {late_s} s at its end"
    for key in parts:
        yield f"devices.csv has {key}, but rounds.csv does not"


def _ledger_sums_the_devices(tables: Tables) -> Iterator[str]:
    """Check that ledger.csv holds each device's sums of devices.csv, and that its totals are those of rounds.csv."""
    if not tables.completed:
        return
    sums: dict[tuple[float, str], list[float]] = defaultdict(list)
    for part in tables.devices:
        for name in LEDGER.values():
            sums[part["device"], name].append(part[name])
    for row in tables.ledger:
        device = row["device"]
        for mine, name in LEDGER.items():
            total = math.fsum(sums.pop((device, name), ()))
            if tables.recorded == "all" and _differs(row[mine], total):
                yield f"ledger.csv: device {device:g} has {mine} {row[mine]}, devices.csv {total}"
        if _differs(row["total_j"], row["energy_j"] + row["idle_j"]):
            yield f"ledger.csv: device {device:g} has total_j {row['total_j']}, which is not energy_j + idle_j"
        capacity_j = tables.battery_j.get(row.get("class", ""))
        if capacity_j is not None:
            drawn_j = capacity_j + row["recharged_j"] - row["left_j"]
            if abs(row["total_j"] - drawn_j) > METER_TOLERANCE * (capacity_j + row["recharged_j"]):
                yield f"ledger.csv: device {device:g} has total_j {row['total_j']}, but its battery lost {drawn_j}"
        if row.get("circuit_j", 0.0) > row["transmit_j"]:
            yield f"ledger.csv: device {device:g} has more energy in circuits than in transfers"
        if row["wasted_j"] > (1 + SUM_TOLERANCE) * row["energy_j"]:
            yield f"ledger.csv: device {device:g} has wasted more energy than its work used"
    for device, _ in sums:
        yield f"ledger.csv lacks device {device:g} of devices.csv"
    for mine, name in (*LEDGER.items(), ("wasted_j", "energy_wasted_j")):
        booked = math.fsum(row[mine] for row in tables.ledger)
        if _differs(booked, total := math.fsum(row[name] for row in tables.rounds)):
            yield f"ledger.csv: {mine} sums to {booked}, {name} of rounds.csv to {total}"


# -- the order of events ------------------------------------------------------------------------------


def _one_round_at_a_time(tables: Tables) -> Iterator[str]:
    """Check that a cell's rounds do not overlap, and that no device is in two rounds at once."""
    for (cell, _), rows in by(tables.rounds, server_of).items():
        for before, row in pairwise(rows):
            if row["start_s"] < before["end_s"] - TIME_DIGIT_S:
                yield f"cell {cell:g}: {named(row)} begins before {named(before)} has ended"
            if row["version"] - before["version"] not in (0, 1):
                yield f"{named(row)}: version {row['version']:g} after {before['version']:g}"
            same = round_key(row)[:3] == round_key(before)[:3]
            if row["round"] != (before["round"] + 1 if same else 1) or row["session"] < before["session"]:
                yield f"{named(row)} follows {named(before)}"
    for device, parts in grouped(tables.devices, "device").items():
        parts.sort(key=lambda part: (part["downlink_start_s"], _last_end_s(part)))
        for before, part in pairwise(parts):
            if part["downlink_start_s"] < _last_end_s(before) - tables.slot_s - TIME_DIGIT_S:
                yield f"device {device:g} is in {named(before)} and in {named(part)} at once"


def _events_alternate(tables: Tables) -> Iterator[str]:
    """Check that arrival and departure, on and off, empty and back, start and end alternate, in the right cells."""
    for before, event in pairwise(tables.events):
        if event["time_s"] < before["time_s"] - TIME_DIGIT_S:
            yield f"events.csv: {event['event']} at {event['time_s']} s comes after {before['time_s']} s"
    for device, events in grouped(tables.events, "device").items():
        if device is None:
            continue
        state = _States()
        for event in events:
            if problem := state.take(event):
                yield f"events.csv: device {device:g} at {event['time_s']} s: {problem}"
    of_sessions = [event for event in tables.events if event["event"] in ("session_start", "session_end")]
    for (cell, _), events in by(of_sessions, server_of).items():
        running, last = None, 0.0
        for event in events:
            number = event["session"]
            if event["event"] == "session_start":
                if running is not None or number != last + 1:
                    yield f"events.csv: session {number:g} of cell {cell} begins after {last:g}, {running} open"
                running = last = number
            elif event["event"] == "session_end":
                if running != number:
                    yield f"events.csv: session {number:g} of cell {cell} ends, {running} is open"
                running = None


class _States:
    """A device's state after its events: place, on or off, charged or empty; None if not known yet.

    A device that is off or empty has no cell, and selects one when it is on again.
    """

    def __init__(self) -> None:
        self.inside: bool | None = None
        self.cell: float | None = None
        self.on: bool | None = None
        self.charged: bool | None = None

    def take(self, event: Row) -> str:
        """Process an event; return how it contradicts the state, or ''."""
        name, cell, was = event["event"], event["cell"], self
        if name == "arrival":
            before, self.inside, self.cell = was.inside, True, cell
            return "arrives, but was already there" if before else ""
        if name == "departure":
            before, in_cell, self.inside, self.cell = was.inside, was.cell, False, None
            if before is False:
                return "departs, but was already gone"
            return "" if None in (in_cell, cell) or in_cell == cell else f"departs from {cell}, not {in_cell}"
        if name == "handover":
            in_cell, self.cell = was.cell, cell
            fits = in_cell in (None, event["from_cell"]) and cell != event["from_cell"]
            return "" if fits else f"handover from {event['from_cell']} to {cell}, but it was in {in_cell}"
        for switch, yes, no in (
            ("on", "switched_on", "switched_off"),
            ("charged", "battery_back", "battery_empty"),
        ):
            if name in (yes, no):
                known = getattr(self, switch)
                setattr(self, switch, name == yes)
                self.cell = cell if name == yes else None
                return "" if known in (None, name == no) else f"{name} twice"
        return ""


def _parts_take_place(tables: Tables) -> Iterator[str]:
    """Check that a participant is in the cell, on and charged from the round's beginning until it ends its work."""
    starts_s = {round_key(row): row["start_s"] for row in tables.rounds}
    events_of = grouped(tables.events, "device")
    for device, parts in grouped(tables.devices, "device").items():
        events, passed, state = events_of.get(device, []), 0, _States()
        begun = [(starts_s.get(round_key(part), math.inf), part) for part in parts]
        begun = [(s if part.get("dispatch") is None else part["downlink_start_s"], part) for s, part in begun]
        for start_s, part in sorted(begun, key=lambda one: one[0]):
            where = f"device {device:g}, {named(part)}"
            while passed < len(events) and events[passed]["time_s"] < start_s - TIME_DIGIT_S:
                state.take(events[passed])
                passed += 1
            # an event at the exact beginning of the round may have happened before or after it
            if passed < len(events) and events[passed]["time_s"] <= start_s + TIME_DIGIT_S:
                continue
            if state.cell not in (None, part["cell"]) or False in (state.inside, state.on, state.charged):
                yield f"{where}: takes part with {vars(state)}"
            until_s = _last_end_s(part) - tables.slot_s - TIME_DIGIT_S
            # a link failure does not end a device's work; reestablishment in another cell has a handover event, too
            while passed < len(events) and events[passed]["time_s"] < until_s:
                event = events[passed]
                if event["event"] not in LINK_EVENTS:
                    break
                moved = event["event"] == "reestablished" and event["from_cell"] is not None
                for each in events[passed : passed + 1 + moved]:
                    state.take(each)
                    passed += 1
            if passed < len(events) and events[passed]["time_s"] < until_s:
                yield f"{where}: {events[passed]['event']} at {events[passed]['time_s']} s while it takes part"


def _sessions_fit(tables: Tables) -> Iterator[str]:
    """Check that a session has one row, and that its rounds do not begin before it."""
    starts_s: dict[tuple[tuple[float, str], float], float] = {}
    for row in tables.sessions:
        key = server_of(row), row["session"]
        if key in starts_s:
            yield f"sessions.csv: cell {row['cell']:g} has session {key[1]:g} twice"
        starts_s[key] = row["start_s"]
    for row in tables.rounds:
        begun_s = starts_s.get((server_of(row), row["session"]))
        if begun_s is not None and row["start_s"] < begun_s - TIME_DIGIT_S:
            yield f"{named(row)}: begins before its session"


CHECKS: tuple[Callable[[Tables], Iterator[str]], ...] = (
    _numbers,
    _stages,
    _rounds_sum_their_devices,
    _ledger_sums_the_devices,
    _one_round_at_a_time,
    _events_alternate,
    _parts_take_place,
    _sessions_fit,
    cloud_keeps_its_books,
)


if __name__ == "__main__":
    wrong = [f"{path}: {problem}" for path in sys.argv[1:] for problem in check_run(path)]
    print("\n".join(wrong) or "all holds")
    raise SystemExit(bool(wrong))
