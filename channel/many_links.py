"""Draw and read the fading of many links together, since a call takes longer than drawing a link's numbers."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from edgefl.channel.fading import Fading
from edgefl.channel.fading_pages import PagedFading, hold, read_pages
from edgefl.channel.units import FloatArray


def power_of_many(links: Sequence[Fading], first_slots: npt.NDArray[np.int64], count: int) -> FloatArray:
    """Return the power of many links at once, with the same values as each link's `power`.

    Missing pages of fading links of the same kind are drawn together.

    Args:
        first_slots: [links] first slot to read for each link, >= 0.
        count: number of slots to read for each link, > 0.

    Returns:
        [links, count] power, beginning at each link's first slot.

    Raises:
        ValueError: a slot is negative, or the count is not positive.
    """
    if count <= 0 or first_slots.min(initial=0) < 0:
        raise ValueError(f"first_slots must be >= 0 and count > 0, got {first_slots} and {count}")
    fading = [link for link in links if isinstance(link, PagedFading) and not link.static]
    if fading and len(fading) == len(links) and len({type(link) for link in fading}) == 1:
        return fading[0].powers(read_pages(fading, first_slots, count))
    power = np.empty((len(links), count))
    for link, first_slot, own in zip(links, first_slots.tolist(), power, strict=True):
        own[:] = link.power(first_slot, count)
    return power


def static_power(links: Sequence[Fading]) -> tuple[npt.NDArray[np.bool_], FloatArray]:
    """Return [links] whether each link is static, and its constant power, which is 1 for a link that fades."""
    static = np.array([link.static for link in links], dtype=bool)
    return static, np.array([link.mean_power if link.static else 1.0 for link in links])


def draw_ahead(links: Sequence[Fading], first_slot: int) -> None:
    """Draw and cache the block that contains a slot for all links that lack it, for later reads of a few links."""
    fading = [link for link in links if isinstance(link, PagedFading) and not link.static]
    hold(0, [(link, first_slot // link.slots) for link in fading])
