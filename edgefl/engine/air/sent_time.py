"""Compute the joules that a server spends on sending in a round; time in which rounds overlap counts only once."""

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence

from edgefl.channel.tdd import OnTime
from edgefl.channel.units import dbm_to_watt
from edgefl.engine.air.radio_round import RadioRound
from edgefl.engine.parts import Span, total

Interval = tuple[float, float]


class SentTime:
    """The times in which each site has sent so far, as disjoint intervals in order."""

    def __init__(self) -> None:
        self._sent: dict[int, list[Interval]] = defaultdict(list)

    def take(self, site: int, intervals: Iterable[Interval]) -> list[Interval]:
        """Add intervals in which a site sends; return the parts that were not yet covered, disjoint and in order."""
        new: list[Interval] = []
        for start_s, end_s in united(intervals):
            for before_s, after_s in self._sent[site]:
                if before_s < end_s and after_s > start_s:
                    if before_s > start_s:
                        new.append((start_s, before_s))
                    start_s = max(start_s, after_s)
            if start_s < end_s:
                new.append((start_s, end_s))
        self._sent[site] = united([*self._sent[site], *new])
        return new

    def forget(self, until_s: float) -> None:
        """Forget intervals that ended by `until_s`; intervals added later must begin no earlier."""
        for site, sent in self._sent.items():
            self._sent[site] = [one for one in sent if one[1] > until_s]


def united(intervals: Iterable[Interval]) -> list[Interval]:
    """Return the union of intervals, disjoint and in order."""
    union: list[Interval] = []
    until_s = -math.inf
    for start_s, end_s in sorted(intervals):
        if end_s <= start_s:
            continue
        if start_s <= until_s:
            until_s = max(until_s, end_s)
            union[-1] = (union[-1][0], until_s)
        else:
            union.append((start_s, end_s))
            until_s = end_s
    return union


def server_energy_j(
    opened: RadioRound, downlinks: Sequence[Span], billed_slots: float = 0.0, billed: SentTime | None = None
) -> float:
    """Return the joules that the cell's server spent on the round's downlinks, which have ended.

    In a dynamic band, the round is billed for all used slots that have not been billed yet, including slots of
    background traffic and of devices that came from another cell after a link failure.

    Args:
        billed_slots: value of the round's `sent_slots` when a round of the cell was last billed.
        billed: sending time billed so far, to which these downlinks are added; only for overlapping rounds, whose
            downlinks do not begin together.
    """
    settings = opened.air.settings
    airtimes_s, to_all_s = [span.airtime_s for span in downlinks], 0.0
    if opened.broadcast is not None:
        # the broadcast lasts as long as any device listens, and then the missing parts are sent
        to_all_s = min(opened.broadcast.airtime_s, max(airtimes_s))
        airtimes_s = [max(0.0, airtime_s - to_all_s) for airtime_s in airtimes_s]
    if opened.air.groups is not None:  # several servers send, and each is billed for its part of the power
        sent_s = (opened.sent_slots - billed_slots) * settings.slot_s
    elif settings.budget.power_over_share == "per_resource_block":
        # what follows a broadcast begins at the same slot for all devices, so the longest airtime is that of the site
        sent_s = max(airtimes_s) if to_all_s else _served_s(opened, downlinks, billed)
    elif opened.air.dynamic:
        sent_s = (opened.sent_slots - billed_slots) * settings.slot_s
    else:
        sent_s = total(airtimes_s)
    return dbm_to_watt(settings.budget.server_power_dbm) * (to_all_s + sent_s)


def _served_s(opened: RadioRound, downlinks: Sequence[Span], billed: SentTime | None) -> float:
    """Return how long sites sent a round's downlinks, s, including downlinks resumed in another cell after a failure.

    Downlinks may begin at different times. Where rounds overlap, time that is already billed is left out.
    """
    pieces = [piece for span in downlinks for piece in (span.pieces or ((opened.cell, span),))]
    air, sent_s = opened.air, 0.0
    frame, slot_s = air.carriers["downlink"].frame, air.slot_s
    for site in {at for at, _ in pieces}:
        sent = [(span.start_s, span.end_s) for at, span in pieces if at == site]
        for start_s, end_s in united(sent) if billed is None else billed.take(site, sent):
            on = OnTime(frame, slot_s, air.next_slot(start_s))
            sent_s += on.airtime_s(start_s, end_s)
            if air.settings.flexible:  # the site does not send while it receives uploads
                waited = air.band(site, "downlink").paused_slots(on.first_slot, on.place(end_s)[0])
                sent_s -= waited * slot_s
    return sent_s
