"""The fading of many links, drawn and read together: what takes the time of one alone is mostly calls."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from channel.fading import Fading, LinkFading, hold
from channel.units import FloatArray


def power_of_many(links: Sequence[Fading], first_slots: npt.NDArray[np.int64], count: int) -> FloatArray:
    """Read the power of many links at once; the numbers are those of `LinkFading.power`.

    Blocks that several links of one correlation lack are drawn together.

    Args:
        links: none of them static.
        first_slots: [links] >= 0.
        count: slots of each, > 0.

    Returns:
        [links, count] |h|^2 of the slots from each link's first one on.

    Raises:
        ValueError: a link is static, a slot is negative, or the count is not positive.
    """
    if count <= 0 or first_slots.min(initial=0) < 0:
        raise ValueError(f"first_slots must be >= 0 and count > 0, got {first_slots} and {count}")
    plain = [link for link in links if isinstance(link, LinkFading)]
    if len(plain) < len(links):
        return np.stack([link.power(at, count) for link, at in zip(links, first_slots.tolist(), strict=True)])
    return _power_of_many(plain, first_slots, count)


def draw_ahead(links: Sequence[Fading], first_slot: int) -> None:
    """Draw the blocks of a slot that many links lack: those who read a few links at a time find them drawn."""
    plain = [link for link in links if isinstance(link, LinkFading) and not link.static]
    hold(0, [(link, first_slot // link._block) for link in plain])


def _power_of_many(links: Sequence[LinkFading], first_slots: npt.NDArray[np.int64], count: int) -> FloatArray:
    if 1.0 in [link.correlation for link in links]:
        raise ValueError("a static link has no slots to read one by one")
    parts = np.empty((len(links), 2, count))
    blocks, starts = np.divmod(first_slots, [link._block for link in links])
    hold(0, list(zip(links, blocks.tolist(), strict=True)))
    left_in_block = np.array([link._block for link in links]) - starts
    # those that reach beyond their block: the second one of all is drawn together; further ones are read alone
    beyond = np.flatnonzero(left_in_block < count).tolist()
    taken = np.minimum(left_in_block, count).tolist()
    for link, part, block, start, slots in zip(
        links, parts, blocks.tolist(), starts.tolist(), taken, strict=True
    ):
        part[:, :slots] = link._page(0, block)[:, start : start + slots]
    hold(0, [(links[i], int(blocks[i]) + 1) for i in beyond])
    for i in beyond:
        parts[i, :, taken[i] :] = links[i]._read(int(first_slots[i]) + taken[i], count - taken[i])
    real, imaginary = parts[:, 0], parts[:, 1]
    return real * real + imaginary * imaginary
