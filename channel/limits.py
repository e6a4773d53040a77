"""What a transfer needs, and when it is taken for one that cannot end."""

import math

from channel.tdd import Frame

# 28 hours of 0.5 ms slots: a longer transfer is taken for one that cannot end
MAX_SLOTS = 200_000_000


def needed_rate(payload_bits: float, bandwidth_hz: float, snr: float, slot_s: float) -> float:
    """Z / (W tau): the sum of spectral efficiencies that a transfer has to gather over its slots.

    Raises:
        ValueError: an argument is out of range.
    """
    if not 0 <= payload_bits < math.inf:
        raise ValueError(f"payload_bits must be >= 0 and finite, got {payload_bits}")
    if not (0 < bandwidth_hz < math.inf and 0 < slot_s < math.inf):
        raise ValueError(f"bandwidth_hz and slot_s must be > 0, got {bandwidth_hz} Hz and {slot_s} s")
    if not 0 < snr < math.inf:
        raise ValueError(f"snr must be positive and finite for a transfer to end, got {snr}")
    return payload_bits / (bandwidth_hz * slot_s)


def refuse_endless(need: float, snr: float, of: Frame, cap: float | None) -> None:
    """Refuse at once what would be read for MAX_SLOTS slots in vain.

    Raises:
        ValueError: at the highest mean rate the transfer would take more than MAX_SLOTS.
    """
    # log2(1 + snr) is no less than the ergodic rate (Jensen), and always at hand
    rate = math.log1p(snr) / math.log(2.0)
    rate = of.mean * (rate if cap is None else min(rate, cap))
    if need > MAX_SLOTS * rate:
        raise ValueError(endless(f"at snr {snr:g} it is expected to take {need / rate:.3g}", MAX_SLOTS))


def endless(why: str, max_slots: int) -> str:
    """Message about a transfer that does not end."""
    return (
        f"the transfer does not end within {max_slots} slots ({why}): give it more bandwidth or power, "
        "a smaller payload, or a shorter distance"
    )
