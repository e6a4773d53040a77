"""Decide how many rounds a probe tries: enough that devices have connected and are at work, but no more."""

import math

from edgefl.engine.settings import RoundSettings
from edgefl.run.plan import RunPlan

PROBE_ROUNDS = 2  # number of rounds per federation, on average
PROBE_WAVES = 6  # if rounds overlap: number of updates of each device at work
SELECTED_WAVES = 4  # if rounds leave out devices: number of participations of each device


def parts_of_waves(plan: RunPlan) -> int:
    """Return how many participations to try until devices have connected; 0 if all take part in the first round."""
    cells, parts = len(plan.world.served), 0
    for world in plan.world.by_federation.values():
        rules, members = world.sections.rounds, world.members_count
        if rules.overlap:
            places = min(rules.server.places or members, rules.selector.wanted(members))
            parts += PROBE_WAVES * min(cells * places, members)
        elif selects(rules, members, cells):
            parts += SELECTED_WAVES * members
    return parts


def rounds_of_each(plan: RunPlan) -> int:
    """Return the number of rounds to try of each of several federations, within the first session."""
    cells, number = len(plan.world.served), PROBE_ROUNDS
    for world in plan.world.by_federation.values():
        rules, members = world.sections.rounds, world.members_count
        if selects(rules, members, cells):
            waves = math.ceil(SELECTED_WAVES * members / max(1, cells * rules.selector.wanted(members)))
            number = max(number, min(waves, world.sections.sessions.longest or waves))
    return number


def selects(rules: RoundSettings, members: int, cells: int) -> bool:
    """Return whether a round leaves out devices, which connect in later rounds."""
    return cells * rules.selector.wanted(members) < members
