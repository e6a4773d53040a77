"""Select devices at similar distances."""

import numpy as np
from pydantic import Field

from edgefl.engine.selectors import Candidates, CountedSelector


class Bands(CountedSelector):
    """Select devices with similar path gains, one group after another, so that near devices do not wait for far ones.

    Devices sorted by path gain are divided into bands. Each round starts with the first device of the next band, and
    continues into the band after it if the next band is too small. Similar to TiFL (Chai et al., HPDC 2020), which
    sorts by measured latency.
    """

    bands: int = Field(3, ge=1, description="number of bands, from near to far")

    def select(self, candidates: Candidates, number: int, rng: np.random.Generator) -> list[int]:
        present = len(candidates.ids)
        near_to_far = np.argsort(-candidates.gains_db, kind="stable")
        first = min(candidates.turn % self.bands * present // self.bands, present - number)
        return sorted(candidates.ids[i] for i in near_to_far[first : first + number])
