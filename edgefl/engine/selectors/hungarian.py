"""Assign blocks of the band so that as many samples as possible arrive."""

import math
from typing import Annotated, ClassVar

import numpy as np
from pydantic import Field

from edgefl.engine.selectors import Candidates, CountedDecider, Decision, Memory
from edgefl.engine.selectors._resources import joules
from edgefl.errors import EdgeflError

POWERS = 0.5 ** (np.arange(17) / 2)  # fractions of the maximum power to try if energy is limited


class Hungarian(CountedDecider):
    """Assign one block of the band to each participant so that as many samples as possible are expected to arrive.

    Chen et al., IEEE Trans. Wireless Commun. 20(1), 2021: on a block, a device contributes its number of samples
    times the probability that its upload arrives (`radio.link.uplink_waterfall_db`), or nothing if the upload would
    end after rounds.deadline_s or exceed the device's energy limit. The Hungarian algorithm maximises the sum. Powers
    are searched in steps of 1.5 dB. The paper's blocks differ in interference; the blocks here differ in width.
    """

    sets: ClassVar[frozenset[str]] = frozenset({"shares", "power"})
    widths: tuple[Annotated[float, Field(gt=0, le=1)], ...] | None = Field(
        None,
        min_length=1,
        description="widths of the blocks, as shares of the band; if left out, one equal block per participant",
    )
    energy_j: float | None = Field(
        None,
        gt=0,
        le=1e9,
        description="maximum energy of each device for computing and sending; null: no limit",
    )

    def decide(
        self, candidates: Candidates, number: int, rng: np.random.Generator, memory: Memory
    ) -> Decision:
        from scipy.optimize import linear_sum_assignment

        of, errors, uplink = candidates, candidates.packet_errors, candidates.uplink
        if errors is None or uplink is None:
            reason = "hungarian needs uploads that may be lost: set radio.link.uplink_waterfall_db"
            raise EdgeflError(reason, ("rounds", "selector"))
        # widths are [kinds of blocks, 1], SNRs [devices, 1, powers]; blocks of equal width are evaluated once
        blocks = np.array(self.widths or [1 / number] * number)[:number]
        kinds, kind = np.unique(blocks, return_inverse=True)
        widths = kinds[:, None]
        powers, most_j = (np.ones(1), math.inf) if self.energy_j is None else (POWERS, self.energy_j)
        snr, static = of.snr_up[:, None, None] * powers, of.static[:, None, None]
        used = np.minimum(
            widths, of.widest_shares[:, None, None]
        )  # the part of a block that the radio can use
        sent_s = uplink.seconds(of.up_bits[:, None, None], used, snr, static)
        sent_j = joules(of.send_w[:, None, None] + of.amplifier_w[:, None, None] * powers, sent_s)
        end_s = (of.before_work_s + of.compute_s)[:, None, None] + sent_s
        fits = (of.compute_j[:, None, None] + sent_j <= most_j) & (end_s <= of.deadline_s)
        counts = of.held[:, None, None] * errors.arrives(uplink.share_snr(used, snr), static) * fits
        best = counts.argmax(axis=2)  # best power of each device on each kind of block
        most = counts.max(axis=2)
        rows, places = linear_sum_assignment(most[:, kind], maximize=True)
        given = kind[places]
        some = most[rows, given] > 0
        if not some.any():  # the fastest device always takes part
            some[end_s[rows, given, 0].argmin()] = True
        rows, places, given = rows[some], places[some], given[some]
        return Decision(of.ids_at(rows), up_shares=blocks[places], power=powers[best[rows, given]])
