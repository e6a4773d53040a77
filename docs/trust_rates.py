"""Compare rates, times and SINR of the preset nr with measurements in networks, for docs/trust.md."""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import simpy
import trust_runs
from scipy import stats

from edgefl.channel.carrier import Carrier
from edgefl.channel.resource_blocks import BlockLink, carried, usable
from edgefl.channel.units import FloatArray
from edgefl.engine.air.budget import Budget, carriers_of
from edgefl.rng import Streams
from edgefl.scenario.world import World

PLACES, CARS = 2000, 400
FADES = 100  # number of equally probable fading powers of a slot
QUANTILES = (0.1, 0.5, 0.9)
TEN_MB_BITS, ALONE = 80_000_000, 40
MBIT = 1e6
OUTDOORS, FULL_LOAD_DB = (
    0.15,
    4.0,
)  # the page's conclusions: how close rates and SINR are to measured values
Range = tuple[float, float]

# Mbit/s at 10, 50 and 90 % of the seconds: least and most of the operators. SIGCOMM24-5GinMidBands/artifacts 2e0034b
GOOD_DOWN: tuple[Range, ...] = (
    (506.0, 727.0),
    (601.0, 810.0),
    (650.0, 895.0),
)  # EU_Phy_DL_All, six operators
SPOTS_DOWN: tuple[Range, ...] = ((345.0, 573.0), (555.0, 763.0), (720.0, 858.0))  # Sec5: O_Sp, V_It, V_Sp
GOOD_UP: tuple[Range, ...] = ((11.9, 83.6), (23.8, 95.6), (28.6, 112.8))  # EU_Phy_UL_goodCQI, five operators
ALL_UP: tuple[Range, ...] = (
    (3.0, 3.0),
    (20.2, 20.2),
    (50.3, 50.3),
)  # UL_Tput_*: n41, 100 MHz, above 0.1 Mbit/s
# dB at 10, 50 and 90 %, of files that download at 5G's cells: uccmisl/5Gdataset 306d92e, driving and standing
SNR_DRIVING, SNR_STANDING = (-6.0, 4.0, 18.0), (-2.0, 3.0, 7.0)


class Alone(NamedTuple):
    """Mbit/s of devices with coverage, each alone in the band, and the share that has coverage."""

    down: FloatArray
    up: FloatArray
    covered: float


def alone(indoor_share: float) -> Alone:
    """Return rates at places all over a cell of 250 m, averaged over fading."""
    one = trust_runs.scenario(devices={"count": PLACES, "indoor_share": indoor_share}, radio={"preset": "nr"})
    world, env = World(one, Streams(one.seed)), simpy.Environment()
    radio, ids = world.radio(env), np.arange(PLACES)
    places_m, coverage = world.movement.positions_m(0.0), radio.coverage
    assert coverage is not None
    here = ids[coverage.among(0, ids, places_m)]
    state = radio.gains.of_links(places_m[here], here, np.zeros(len(here), dtype=int))
    budget, carriers = Budget(one.radio, np.full(PLACES, 10**2.3 / 1000)), carriers_of(one.radio)
    snr = budget.mean_snr(state, 0)
    rates = {
        direction: efficiency
        * carriers[direction].frame.mean
        * carriers[direction].unit_bits
        / one.radio.slot_s
        for direction, efficiency in {
            "downlink": carriers["downlink"].mean_efficiency(snr["downlink"]),
            "uplink": in_blocks(carriers["uplink"], snr["uplink"], budget.control(state)),
        }.items()
    }
    return Alone(rates["downlink"] / MBIT, rates["uplink"] / MBIT, len(here) / PLACES)


def in_blocks(carrier: Carrier, snr: FloatArray, control: FloatArray) -> FloatArray:
    """Return the mean rates [n] of uplinks that have all resource blocks and use the best number of them, bit/s/Hz.

    Args:
        snr: [n] with full power on the whole band.
        control: [n] power that power control allows on the whole band, as a multiple of the device's power.
    """
    assert carrier.blocks is not None
    assert carrier.steps is not None
    power = stats.gamma.ppf((np.arange(FADES) + 0.5) / FADES, carrier.taps, scale=1 / carrier.taps)
    link = BlockLink((snr * carrier.blocks)[:, None] * power, (snr * control)[:, None] * power)
    given = usable(link, carrier.steps.whole, carrier.blocks)
    return np.asarray(carried(link, given, carrier.steps.whole)[0].mean(axis=1) / carrier.blocks)


def sinr_db(load: float) -> FloatArray:
    """Return the mean downlink SINR of cars without beam gain, as phones measure it on a cell's own signals, dB."""
    layout = {"rings": 1, "isd_m": 500.0, "sectors": 3, "federations": "centre"}
    one = trust_runs.scenario(
        devices={"count": CARS, "mobility": {"name": "random_direction", "area_factor": 1.0}},
        layout=layout,
        radio={"preset": "nr", "path_loss": "uma", "neighbour_load": load, "budget": {"array_gain_db": 0.0}},
    )
    world, env = World(one, Streams(one.seed)), simpy.Environment()
    radio, ids = world.radio(env), np.arange(CARS)
    places_m = world.movement.positions_m(0.0)
    cells = world.network(env, trust_runs.Rows()).serving(ids)
    return np.asarray(10.0 * np.log10(radio.readings(places_m, ids, cells)[1]))


def ten_megabytes(indoor_share: float) -> dict[str, list[float]]:
    """Return the seconds that 10 MB take in each direction for devices that use a cell of 250 m one at a time."""
    parts = trust_runs.rounds("nr", ALONE, alone=True, bits=TEN_MB_BITS, indoor_share=indoor_share)
    return {stage: [trust_runs.took_s(part, stage) for part in parts] for stage in ("downlink", "uplink")}


def _rows(row: Any, what: str, ranges: Sequence[Range], found: Sequence[float], unit: str) -> Iterator[Any]:
    allowed = OUTDOORS if what.endswith("outdoors") else None
    for quantile, (low, high), value in zip(QUANTILES, ranges, found, strict=True):
        yield row(f"{what}, {quantile:.0%}", min(max(value, low), high), value, unit, allowed)


def rates(row: Any, section: Any) -> Any:
    """Compare quantiles of the rate of a device alone in the band with measured quantiles."""
    outdoors, everywhere = alone(0.0), alone(0.8)
    rows = []
    for name, found, down, up in (
        ("outdoors", outdoors, GOOD_DOWN, GOOD_UP),
        ("80 % indoors", everywhere, SPOTS_DOWN, ALL_UP),
    ):
        for way, ranges, values in (("downlink", down, found.down), ("uplink", up, found.up)):
            rows += _rows(row, f"{way}, {name}", ranges, np.quantile(values, QUANTILES), "Mbit/s")
    return section(
        "Rates of one device",
        "SIGCOMM24-5GinMidBands/artifacts 2e0034b, commercial networks at 3.5 GHz with 80 to 100 MHz, one value per"
        " second; if the operators' values span a range, the reference is the value in this range that is nearest"
        " to our value. Outdoor values are from six operators in Europe, with good reception (in the uplink CQI 12 or"
        " more). Values for 80 % indoors are from many places in four of these networks; the uplink values are from"
        " 100 MHz of band n41, measured while the uplink carried data",
        f"preset nr, {PLACES:,} places in a cell of 250 m; each device is alone in the band, and uses the number"
        " of uplink resource blocks that gives the highest rate, averaged over fading; with 80 % indoors,"
        f" {everywhere.covered:.1%} of the devices have coverage",
        rows,
        RATES_WHY,
    )


def times(row: Any, section: Any) -> Any:
    """Compare quantiles of the time to move 10 MB with the quantiles that measured rates imply."""
    rows = []
    for name, indoor_share, down, up in (
        ("outdoors", 0.0, GOOD_DOWN, GOOD_UP),
        ("80 % indoors", 0.8, SPOTS_DOWN, ALL_UP),
    ):
        took = ten_megabytes(indoor_share)
        for stage, ranges in (("downlink", down), ("uplink", up)):
            # the slowest tenth of the rates is the longest tenth of the times
            turned = [(80.0 / high, 80.0 / low) for low, high in reversed(ranges)]
            rows += _rows(row, f"{stage}, {name}", turned, np.quantile(took[stage], QUANTILES), "s")
    return section(
        "Time to move 10 MB",
        "80 Mbit divided by the measured rates above",
        f"{ALONE} devices in a cell of 250 m, which use the band one at a time",
        rows,
        TIMES_WHY,
    )


def sinr(row: Any, section: Any) -> Any:
    """Compare quantiles of the SINR under load with the quantiles that phones report."""
    rows = []
    for load in (0.0, 0.5, 1.0):
        found = np.quantile(sinr_db(load), QUANTILES)
        for quantile, reference, value in zip(QUANTILES, SNR_DRIVING, found, strict=True):
            allowed = FULL_LOAD_DB if load == 1 else None
            rows.append(row(f"load {load:g}, {quantile:.0%}", reference, float(value), "dB", allowed))
    return section(
        "SINR under load",
        "uccmisl/5Gdataset 306d92e, the SNR that a phone reports in 5G while it downloads: -6, 4 and 18 dB"
        " at the 10, 50 and 90 % quantiles while driving, and -2, 3 and 7 dB while standing still",
        f"preset nr, {CARS} cars among seven three-sector UMa sites 500 m apart; without beam gain, because a"
        " phone reports the SNR of signals without beams",
        rows,
        SINR_WHY,
    )


RATES_WHY = (
    "Outdoors all quantiles except one are within the operators' range. The assumption that four real layers carry"
    " as much as two ideal layers is also based on these measurements: the operator with the most layers, 3.9 on"
    " average, has 895 Mbit/s at the 90 % quantile, while four ideal layers of 256QAM would carry 1,670. With 80 %"
    " of the devices indoors, the slowest tenth is slower than measured, by 77 % in the downlink and 64 % in the"
    " uplink: the measuring phones were mostly outdoors, and networks move a phone with such a bad link to a lower"
    " band, which this cell does not have. The fastest tenth of the uplink is 115 % faster than measured: the"
    " measured operator's frame gives the uplink at most a fifth of the time, shared with other users; in edgefl"
    " the device has the uplink's whole 23 % of a DDDSU frame and, near the site, uses 256QAM."
)
TIMES_WHY = (
    "The times were computed at other places than the rates in the table above. There are only 40 places, so each"
    " quantile depends on only a few places. With 80 % of the devices indoors, the slowest tenth takes 5 to 7 times"
    " as long as measured, and the median of the uplink 1.6 times as long, for the reason given above: there is no"
    " lower band. The fastest tenth of the uplink takes 41 % less time than measured, because each device has the"
    " band to itself."
)
SINR_WHY = (
    "Under full load the quantiles are within 4 dB of the phones' reports, and under half load they are within 7 dB:"
    " most of the interference that phones measure comes from other cells' always-on signals. Without load only"
    " noise remains, and the SINR is 19 to 30 dB higher, since the signal of a site of 53 dBm is far above the"
    " noise."
)


def measured(row: Any, section: Any) -> Iterator[Any]:
    """Yield the sections about rates, times and SINR, made with the given row and section classes."""
    for part in (rates, times, sinr):
        yield part(row, section)
