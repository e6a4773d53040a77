"""Fading of many links, drawn and read together, since single calls cost more than the numbers they draw."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from edgefl.channel.diversity import PAGE, DiverseFading, hold_powers, power_of_diverse
from edgefl.channel.fading import Fading, LinkFading, hold
from edgefl.channel.units import FloatArray


def power_of_many(links: Sequence[Fading], first_slots: npt.NDArray[np.int64], count: int) -> FloatArray:
    """Return the power of many links at once; the numbers are those of `LinkFading.power`.

    Missing blocks of links with one correlation are drawn together.

    Args:
        links: links that fade.
        first_slots: [links] >= 0.
        count: slots of each link, > 0.

    Returns:
        [links, count] |h|^2 from each link's first slot on.

    Raises:
        ValueError: a link is static, a slot is negative, or the count is not positive.
    """
    if count <= 0 or first_slots.min(initial=0) < 0:
        raise ValueError(f"first_slots must be >= 0 and count > 0, got {first_slots} and {count}")
    diverse = [link for link in links if isinstance(link, DiverseFading)]
    if len(diverse) == len(links):
        return power_of_diverse(diverse, first_slots, count)
    plain = [link for link in links if isinstance(link, LinkFading)]
    if len(plain) < len(links):
        return np.stack([link.power(at, count) for link, at in zip(links, first_slots.tolist(), strict=True)])
    return _power_of_many(plain, first_slots, count)


def static_power(links: Sequence[Fading]) -> tuple[npt.NDArray[np.bool_], FloatArray]:
    """Return [links] whether each is static, and the power that it then keeps; 1 for a link that fades."""
    static = np.array([link.static for link in links], dtype=bool)
    return static, np.array([link.mean_power if link.static else 1.0 for link in links])


def draw_ahead(links: Sequence[Fading], first_slot: int) -> None:
    """Draw a slot's block for all links that lack it, so that later reads of a few links find it."""
    plain = [link for link in links if isinstance(link, LinkFading) and not link.static]
    hold(0, [(link, first_slot // link._block) for link in plain])
    hold_powers([(link, first_slot // PAGE) for link in links if isinstance(link, DiverseFading)])


def _power_of_many(links: Sequence[LinkFading], first_slots: npt.NDArray[np.int64], count: int) -> FloatArray:
    if 1.0 in [link.correlation for link in links]:
        raise ValueError("a static link has no slots to read one by one")
    parts = np.empty((len(links), 2, count))
    blocks, starts = (of.tolist() for of in np.divmod(first_slots, [link._block for link in links]))
    done, left = [0] * len(links), list(range(len(links)))
    while left:  # one block of each link at a time; missing ones are drawn together
        hold(0, [(links[i], blocks[i]) for i in left])
        for i in left:
            link, start, first = links[i], starts[i], done[i]
            slots = min(link._block - start, count - first)
            parts[i, :, first : first + slots] = link._page(0, blocks[i])[:, start : start + slots]
            blocks[i], starts[i], done[i] = blocks[i] + 1, 0, first + slots
        left = [i for i in left if done[i] < count]
    real, imaginary = parts[:, 0], parts[:, 1]
    return real * real + imaginary * imaginary
