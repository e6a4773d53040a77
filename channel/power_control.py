"""Uplink power control, which sets a device's power according to its path loss."""

import numpy as np
import numpy.typing as npt

from edgefl.channel.units import FloatArray, dbm_to_watt

SUBCARRIERS = 12  # subcarriers per resource block


def resource_blocks(bandwidth_hz: npt.ArrayLike, slot_s: float) -> FloatArray:
    """Return the unrounded number of a band's resource blocks (15 kHz subcarriers in 1 ms slots, 30 kHz in 0.5 ms).

    Source: 3GPP TS 38.211, 4.3.2 and 4.4.4.1. Left out: guard bands; 100 MHz with 30 kHz has 277.8 blocks here, and
    273 in TS 38.101-1, Table 5.3.2-1.
    """
    return np.asarray(bandwidth_hz, dtype=float) / (SUBCARRIERS * 15.0 / slot_s)


def wanted_power(
    path_loss_db: npt.ArrayLike,
    blocks: npt.ArrayLike,
    max_power_w: npt.ArrayLike,
    *,
    p0_dbm: float,
    alpha: float,
    slot_s: float,
) -> FloatArray:
    """Return the ratio of the power that power control requires to a device's maximum, P0 2^mu M PL^alpha / Pmax.

    A device radiates this fraction of its maximum power, or its full power if power control requires more.

    With alpha = 1, every device is received with P0 per 180 kHz (a block of 15 kHz subcarriers) as long as its power
    suffices; with alpha < 1, devices at the edge are received with less power, and interfere less with other cells.
    Without power control, all devices send with Pmax, and devices near a site radiate 10 to 20 dB more than their
    highest rate needs.

    Args:
        path_loss_db: [devices] path loss, including shadowing and penetration loss.
        blocks: [devices] number M of resource blocks of the transmission.
        max_power_w: [devices] maximum power Pmax, or one value for all.
        p0_dbm: target received power per 180 kHz at a path loss of 0 dB.
        alpha: share of the path loss in dB that is compensated, 0 to 1.
        slot_s: length of a slot, 1 ms / 2^mu; resource blocks are then 2^mu times 180 kHz wide.

    Returns:
        [devices] required power divided by maximum power, > 0; above 1 if the maximum power does not suffice.

    Source: 3GPP TS 38.213, 7.1.1, open loop. Left out: closed-loop commands, and the correction for the modulation.
    """
    wide_w = dbm_to_watt(p0_dbm) * (1e-3 / slot_s) * np.asarray(blocks)
    wanted_w = wide_w * 10.0 ** (alpha * np.asarray(path_loss_db) / 10.0)
    return np.asarray(wanted_w / np.asarray(max_power_w))
