"""Compare simulated joules per bit with published measurements of phones, for docs/trust.md."""

from typing import Any

from trust_runs import ALONE, SVHN_BITS, rounds, took_s

from edgefl.engine.power_models import Equipment
from edgefl.engine.power_models.phone_5g import Phone5G
from edgefl.engine.records import DeviceRound

PHONE = "36 nJ/bit at an RSRP above -75 dBm and 63 nJ/bit below -95 dBm"


def joules(row: Any, section: Any) -> Any:
    """Return the section about joules per bit, made with the given row and section classes."""
    draws = Phone5G().draws(Equipment(0.2, 1.0, 0.1, 0.0))
    rows = [
        row(
            f"{stage}, power model at {mbit_s:.0f} Mbit/s",
            value,
            1e3 * power_w / mbit_s + 1e9 * j_bit,
            "nJ/bit",
        )
        for stage, power_w, j_bit, median_w, values in (
            ("uplink", draws.send_w, draws.send_j_bit, 3.93, (36.0, 63.0)),
            ("downlink", draws.receive_w, draws.receive_j_bit, 5.91, (3.4, 6.1)),
        )
        for value in values
        for mbit_s in [1e3 * median_w / value]
    ]
    parts = rounds("nr", ALONE, alone=True, indoor_share=0.0, power="phone_5g")
    for stage, (low, high) in (("uplink", (36.0, 63.0)), ("downlink", (3.4, 6.1))):
        found = joules_per_bit(parts, stage)
        for name, place in (("slowest", 0), ("median", len(found) // 2), ("fastest", -1)):
            mbit_s, value = found[place]
            rows.append(
                row(f"{stage}, {name}: {mbit_s:.0f} Mbit/s", min(max(value, low), high), value, "nJ/bit")
            )
    return section(
        "Joules per bit",
        f"SIGCOMM21-5G/artifact: for uplinks above 50 Mbit/s {PHONE}, at a median power of 3.93 W; for downlinks"
        " above 300 Mbit/s 3.4 to 6.1 nJ/bit, at a median power of 5.91 W; for runs, the reference is the value"
        " in the range that is nearest to our value",
        f"devices.power: phone_5g; the runs have preset nr and {ALONE} devices outdoors in a cell of 250 m, each"
        " alone in the band",
        rows,
        "The energy per bit is essentially 3.5 W divided by the rate. At the measured rates the power model"
        " reproduces the measured values, and the median and the fastest simulated devices agree with the model,"
        " too. The slowest devices, at the cell's edge, have a tenth to a third of the measured rates, and spend"
        " correspondingly more per bit. Devices that share a band are charged in proportion to their share.",
    )


def joules_per_bit(parts: list[DeviceRound], stage: str) -> list[tuple[float, float]]:
    """Return the Mbit/s and nJ/bit of each part, sorted by rate."""
    energy = "energy_tx_j" if stage == "uplink" else "energy_rx_j"
    return sorted(
        (
            SVHN_BITS / took_s(part, stage) / 1e6,
            getattr(part, energy) / SVHN_BITS * 1e9,
        )
        for part in parts
    )
