"""Test uploads that are lost over the air, and a decider that takes the probability of arrival into account."""

from itertools import permutations
from typing import Any

import numpy as np
import pytest
from pydantic import PrivateAttr

from edgefl.engine.records import DeviceRound, Round
from edgefl.engine.selectors import Candidates, CountedDecider, Decision, Memory
from edgefl.engine.selectors.hungarian import Hungarian
from edgefl.errors import EdgeflError
from edgefl.testing import Scripted, SmallWorld, small_world
from edgefl.testing.cell import within
from edgefl.testing.decider_contract import CARRIER, candidates_of
from tests.refusals import refused_at

PLACES_M, ROUNDS, SIGMAS = [60.0, 90.0, 120.0, 200.0], 250, 4.0
SCHEDULE = {"name": "schedule", "count": 1, "rounds": ROUNDS}


def world(waterfall_db: float | None, **options: Any) -> SmallWorld:
    """Return a world whose links do not fade, so that each has a single probability of arrival."""
    link = options.pop("link", {"uplink_waterfall_db": waterfall_db})
    radio = within({"link": link}, options.pop("radio", {}))
    return small_world(
        PLACES_M, policy=SCHEDULE, radio=radio, learner=Scripted(work=(1, 10, 10_000, 10_000)), **options
    )


class Told(CountedDecider):
    """Let all devices take part, and record the inputs."""

    _told: list[Candidates] = PrivateAttr(default_factory=list)

    def decide(
        self, candidates: Candidates, number: int, rng: np.random.Generator, memory: Memory
    ) -> Decision:
        self._told.append(candidates)
        return Decision(candidates.ids)


def test_a_threshold_parts_strong_links_from_weak_ones() -> None:
    """Without fading, every upload above the threshold arrives, and no upload below it."""
    decider = Told(count=4)
    world(None, rules={"selector": decider}).run()
    snr = decider._told[0].snr_up * 4  # full power on a quarter of the band
    between = float(10 * np.log10(np.sort(snr)[1:3]).mean())
    rows = world(None, link={"uplink_threshold_db": between}).run().rows.of[DeviceRound]
    for device, one in enumerate(snr):
        outcomes = {row.outcome for row in rows if row.device == device}
        assert outcomes == {"completed" if 10 * np.log10(one) > between else "lost_uplink"}


def test_lost_as_often_as_the_model_says_and_paid_for() -> None:
    """At full power on their share, uploads arrive with probability exp(-m / SNR); lost ones use equal energy."""
    whole = world(None).run().rows
    decider = Told(count=4)
    rows = world(40.0, rules={"selector": decider}).run().rows
    snr = decider._told[0].snr_up * 4  # full power on a quarter of the band
    for device in range(len(PLACES_M)):
        parts = [row for row in rows.of[DeviceRound] if row.device == device]
        sent = [row for row in whole.of[DeviceRound] if row.device == device]
        assert {row.outcome for row in parts} <= {"completed", "lost_uplink"}
        assert [(row.uplink_end_s, row.energy_j, row.uplink_bits) for row in parts] == [
            (row.uplink_end_s, row.energy_j, row.uplink_bits) for row in sent
        ]
        arrives = np.exp(-1e4 / snr[device])
        got = np.mean([row.outcome == "completed" for row in parts])
        assert abs(got - arrives) <= SIGMAS * np.sqrt(arrives * (1 - arrives) / ROUNDS)
    wasted = sum(row.energy_wasted_j for row in rows.of[Round])
    assert wasted == pytest.approx(
        sum(row.energy_j for row in rows.of[DeviceRound] if row.outcome != "completed")
    )


def test_an_unbiased_server_weights_by_the_probability_of_arrival() -> None:
    """With `unbiased`, an update that arrives has the weight 1 / exp(-m / SNR); the default has no weights."""
    decider = Told(count=4)
    run = world(40.0, rules={"selector": decider, "server": {"name": "synchronous", "unbiased": True}})
    run.run()
    snr = decider._told[0].snr_up * 4  # full power on a quarter of the band
    told = [call for call in run.learner.calls if call[0] == "aggregate"]
    assert len(told) > ROUNDS / 2
    for _, ids, weights in told:
        assert weights == pytest.approx([np.exp(1e4 / snr[id_]) for id_ in ids], rel=1e-9)
    plain = world(40.0)
    plain.run()
    assert {len(call) for call in plain.learner.calls if call[0] == "aggregate"} == {2}


def test_hungarian_is_the_best_of_all_assignments() -> None:
    """Hungarian's choice matches a search of all assignments of 3 unequal blocks to 5 devices, at 3 energy limits."""
    rng, widths = np.random.default_rng(3), (0.5, 0.3, 0.2)
    for energy_j in (None, 1.0, 0.4):
        told = candidates_of(rng, [2, 3, 5, 7, 11], 0, deadline_s=3.0, static=np.ones(5, dtype=bool))
        got = Hungarian(count=3, widths=widths, energy_j=energy_j).decide(told, 3, rng, {})
        powers = [1.0] if energy_j is None else 0.5 ** (np.arange(17) / 2)

        def worth(
            place: int,
            width: float,
            told: Any = told,
            most_j: float = energy_j or np.inf,
            powers: Any = powers,
        ) -> float:
            best = 0.0
            for power in powers:
                snr = float(CARRIER.share_snr(width, told.snr_up[place] * power))
                rate = width * float(CARRIER.efficiency(snr)) * CARRIER.unit_bits / CARRIER.slot_s
                sent_s = told.up_bits[place] / rate
                joules = (
                    told.compute_j[place] + (told.send_w[place] + told.amplifier_w[place] * power) * sent_s
                )
                in_time = told.down_s[place] + told.compute_s[place] + sent_s <= 3.0
                if in_time and joules <= most_j:
                    best = max(best, told.held[place] * np.exp(-1.0 / snr))
            return best

        best = max(
            sum(worth(place, width) for place, width in zip(places, widths, strict=True))
            for places in permutations(range(5), 3)
        )
        places = [[2, 3, 5, 7, 11].index(id_) for id_ in got.ids]
        assert got.up_shares is not None
        mine = sum(worth(place, width) for place, width in zip(places, got.up_shares.tolist(), strict=True))
        assert mine == pytest.approx(best, rel=1e-9)


def test_hungarian_needs_losses() -> None:
    with pytest.raises(EdgeflError, match=r"set radio\.link\.uplink_waterfall_db"):
        world(None, rules={"selector": {"name": "hungarian", "count": 2}}).run()
    with refused_at("", "up_shares", 1.2):
        world(10.0, rules={"selector": {"name": "hungarian", "count": 2, "widths": [0.6, 0.6]}}).run()
    run = world(10.0, rules={"selector": {"name": "hungarian", "count": 2, "widths": [0.7, 0.3]}}).run()
    assert len([row for row in run.rows.of[DeviceRound] if row.round == 1]) == 2
