"""Background traffic: other users of a cell whose files share the band with learning."""

from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import simpy

from channel.fading import LinkFading, slot_correlation
from channel.tdd import Direction
from channel.units import FloatArray
from edgefl.engine.radio import Radio
from edgefl.engine.radio_settings import BackgroundSettings
from edgefl.errors import EdgeflError
from edgefl.rng import Streams

# cell -> direction -> [users] mean SNR on the whole band with full power
UsersSnr = Callable[[int], dict[Direction, FloatArray]]


@dataclass(frozen=True)
class Background:
    """Files of background users: they come as a Poisson process to each cell and direction, each of a user at random.

    The load is the share of time in which they would use the band alone: files come at load over the mean time that
    one takes alone in it. An M/G/1 queue, so that with round robin, which shares time as processor sharing does, a
    transfer that takes x alone takes x / (1 - load) in the mean (Kleinrock 1976, 4.4), and x with `learning_first`.
    Users stay where they are; those that the lowest rate does not reach have no traffic. Left out: control of
    congestion, sessions of a user, and that a user has one file at a time.

    Args:
        cells: that have background traffic.
        users_snr: returns the users of a cell, as many as the settings ask for.
    """

    env: simpy.Environment
    settings: BackgroundSettings
    radio: Radio
    cells: Sequence[int]
    users_snr: UsersSnr
    streams: Streams

    def processes(self) -> Iterator[Generator[simpy.Event, None, None]]:
        """Yield all generators that the composition root must start."""
        for cell in self.cells:
            snr: dict[Direction, FloatArray] | None = None
            for direction in self.settings.loads:
                if self.settings.loads[direction]:
                    snr = snr or self.users_snr(cell)
                    yield self._arrivals(cell, direction, snr[direction])

    def _arrivals(
        self, cell: int, direction: Direction, snr: FloatArray
    ) -> Generator[simpy.Event, None, None]:
        settings, env = self.settings, self.env
        taken_s = self.radio.seconds_alone(direction, settings.file_bits, snr)
        reached = np.flatnonzero(np.isfinite(taken_s))
        if not len(reached):
            raise EdgeflError(
                f"no user of cell {cell} is within reach: give more users", ("radio", "background")
            )
        rng = self.streams("background", direction, cell)
        between_s = float(taken_s[reached].mean()) / settings.loads[direction]
        correlation = slot_correlation(
            settings.speed_m_s, carrier_hz=self.radio.carrier_hz, slot_s=self.radio.slot_s
        )
        key = self.streams.key("background", "fading", direction, cell)
        fading = {user: LinkFading(key ^ user << 64, correlation) for user in reached.tolist()}
        number = 0
        while True:
            yield env.timeout(rng.exponential(between_s))
            user = int(rng.choice(reached))
            slot = self.radio.next_slot(env.now)
            yield env.timeout(max(0.0, slot * self.radio.slot_s - env.now))
            number += 1
            self.radio.join_background(
                cell, direction, number, settings.file_bits, float(snr[user]), fading[user], slot
            )
