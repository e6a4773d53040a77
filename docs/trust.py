"""Write docs/trust.md: compare each law of the radio with its reference, and simulated quantities with measurements.

python docs/trust.py           `make trust`; some minutes, all numbers are functions of the code
python docs/trust.py faults    only the last section, from the results that `make faults` and `make mutants` saved
"""

import csv
import math
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
from scipy import special, stats

from edgefl.channel.fading import LinkFading, doppler_hz, slot_correlation
from edgefl.channel.field_stack import FieldStack
from edgefl.channel.gaussian_fields import GaussianFields
from edgefl.channel.modulation import Steps
from edgefl.channel.path_loss.umi import UMi
from edgefl.channel.penetration import INSIDE_DB_PER_M, STD_DB, Walls, penetration_loss_db, wall_loss_db
from edgefl.channel.share import ergodic_rate
from edgefl.channel.units import db_to_linear

HERE = Path(__file__).parent
GOLDEN = HERE.parent / "tests" / "golden" / "golden_umi.csv"
HEAD = """\
# Trust

This page compares every law of the radio with its source, and simulated runs with figures from published
measurements. It also explains the differences. A program computes edgefl's figures, and a test checks them.

*Allowed* is the largest deviation from the reference that a test accepts, in the same unit as the deviation. If
this column says *page*, the figure deviates from the reference for the reason given below the table, and the test
compares the figure with the figure printed here, within 0.1 % for laws and 1 % for runs. A *fault* is one of [the
faults below](#fault-injection) that makes the deviation larger than allowed.
"""


class Row(NamedTuple):
    """A row of a table: the quantity, the two values, and the allowed deviation.

    Args:
        allowed: the largest deviation, or None if the values differ for a stated reason; a test then compares `here`
            with the page.
        fault: id of a fault of tests/faults that makes the deviation larger than allowed.
    """

    what: str
    reference: float
    here: float
    unit: str = ""
    allowed: float | None = None
    fault: str = ""

    @property
    def off(self) -> float:
        """Return the deviation, in the row's unit for dB and for shares, otherwise relative to the reference."""
        off = self.here - self.reference
        return off if self.unit in ("dB", "") else off / self.reference

    def cells(self) -> list[str]:
        """Return the row's cells as text."""
        off = self.off if abs(self.off) >= 1e-5 else 0.0
        if self.unit in ("dB", ""):
            told, allowed = f"{off:+.2g}", f"{self.allowed:.2g}" if self.allowed is not None else "page"
        else:
            told, allowed = f"{off:+.0%}", f"{self.allowed:.0%}" if self.allowed is not None else "page"
        fault = f"`{self.fault}`" if self.fault else ""
        return [self.what, _text(self.reference), _text(self.here), self.unit, told, allowed, fault]


class Section(NamedTuple):
    """A law or a measurement: the sources of its two values, its rows, and the reasons for deviations."""

    title: str
    reference: str
    here: str
    rows: list[Row]
    why: str


# -- laws ---------------------------------------------------------------------------------------------


def path_loss() -> Section:
    """Compare path loss and the probability of line of sight with values of two other simulators."""
    with GOLDEN.open() as file:
        golden = list(csv.DictReader(line for line in file if not line.startswith("#")))
    rows = []
    for one in golden:
        if float(one["d2d_m"]) not in (20.0, 100.0, 250.0, 1000.0):
            continue
        source, metres = one["source"].split("-")[0], one["d2d_m"]
        allowed = 0.006 if source == "sionna" else 1e-5
        for sight, column in ((True, "pl_los_db"), (False, "pl_nlos_db")):
            ours = float(UMi().path_loss_db(float(metres), carrier_hz=3.5e9, line_of_sight=sight))
            name = f"{'LoS' if sight else 'NLoS'} at {metres} m, {source}"
            fault = "channel.umi_obstructed_slope"
            if sight:  # the breakpoint is at 210 m
                fault = "channel.breakpoint" if float(metres) > 210 else ""
            rows.append(Row(name, float(one[column]), ours, "dB", allowed, fault))
        if source == "sionna":
            ours = float(UMi().los_probability(float(metres)))
            name = f"probability of LoS at {metres} m, {source}"
            rows.append(Row(name, float(one["p_los"]), ours, "", 1e-9, "channel.los_18_m"))
    return Section(
        "Path loss and line of sight",
        "Sionna 2.2.0 and ns-3 3.44, run at 3.5 GHz with UMi of 38.901",
        "`edgefl.channel.path_loss.umi`",
        rows,
        "Sionna uses 299,792,458 m/s for the speed of light, while ns-3 and edgefl use 3e8, as in note 1"
        " of 38.901's Table 7.4.1-1. This difference moves the breakpoint by 0.07 % and the loss beyond it by at most"
        " 0.0057 dB.",
    )


ERRORS = 4  # allowed deviation of a sampled figure, in standard errors
FIELDS = 200  # independent sites, over which correlations are averaged


def shadowing() -> Section:
    """Compare the correlation of shadowing over distance with the exponential law."""
    rng = np.random.default_rng(0)
    here = np.array([(x, y) for x in (-40, 0, 40) for y in (-40, 0, 40)]) + rng.uniform(-3, 3, (9, 2))
    angle = rng.uniform(0, 2 * math.pi, 9)
    rows, error = [], math.sqrt(2 / (FIELDS * 9))
    for state, metres in (("LoS", 10.0), ("NLoS", 13.0)):
        size = {"correlation_m": metres, "area_radius_m": 95.0}
        fields = FieldStack([GaussianFields(keys=range(FIELDS), stream=0, **size)])
        first = fields.at(here).astype(float)
        for lag_m in (2.0, 5.0, 10.0, 26.0):
            there = here + lag_m * np.stack([np.cos(angle), np.sin(angle)], axis=1)
            second = fields.at(there).astype(float)
            measured = 1.0 - float((0.5 * (first - second) ** 2).mean())
            law = math.exp(-lag_m / metres)
            allowed = ERRORS * (1 - law) * error + 0.012
            rows.append(
                Row(f"correlation at {lag_m:g} m, {state}", law, measured, "", allowed, "channel.field_law")
            )
    return Section(
        "Shadowing over distance",
        "38.901, 7.4.4: exp(-d / 10 m) in line of sight, exp(-d / 13 m) without line of sight",
        "`edgefl.channel.gaussian_fields`, 200 fields at 9 places",
        rows,
        f"The figures are Monte Carlo estimates, with a standard error of up to {error:.3f}. The fields are linear"
        " between nodes 1.25 m apart, which adds an error of at most 0.012 at distances of a few metres. The allowed"
        " deviation is 0.012 plus four standard errors.",
    )


SPEED_M_S, SLOT_S, CARRIER_HZ = 10.0, 0.5e-3, 3.5e9
TRANSFER = 1000  # slots of a transfer


def fading() -> Section:
    """Compare the correlation of fading over time with Jakes's law."""
    rho = slot_correlation(SPEED_M_S, carrier_hz=CARRIER_HZ, slot_s=SLOT_S)
    sample = LinkFading(7, rho).gain(0, 400_000)
    power = float((np.abs(sample) ** 2).mean())
    turn = 2 * math.pi * doppler_hz(SPEED_M_S, carrier_hz=CARRIER_HZ) * SLOT_S
    rows = []
    for lag in (1, 2, 5, 10, 20):
        measured = float((sample[lag:] * sample[:-lag].conj()).real.mean()) / power
        law, allowed = float(special.j0(turn * lag)), ERRORS * _bartlett(rho, lag, len(sample))
        name = f"correlation after {lag} slot{'s' * (lag > 1)} of 0.5 ms at 10 m/s"
        if lag == 1:
            rows.append(Row(name, law, measured, "", allowed, "channel.rho_squared"))
        else:
            rows.append(Row(name, law, measured))
            name = f"compared with rho^{lag} (rho after one slot)"
            rows.append(Row(name, rho**lag, measured, "", allowed, "channel.fading_forgets"))
    lags = np.arange(1, TRANSFER)
    both = (special.j0(turn * lags) ** 2, rho ** (2.0 * lags))
    law, ours = (TRANSFER / (1 + 2 * float(((1 - lags / TRANSFER) * squares).sum())) for squares in both)
    rows.append(Row(f"effective number of independent slots in {TRANSFER}", law, ours, "slots"))
    return Section(
        "Fading over time",
        "Jakes's law, J0(2 pi f_d t), which assumes scatterers in all directions",
        "`edgefl.channel.fading`, 400,000 slots of one link",
        rows,
        "As in the journal paper, fading is a Gauss-Markov process. The correlation of this process equals Jakes's"
        " correlation after one slot. After n slots it is rho^n, which falls exponentially, while Jakes's"
        " correlation falls faster at first and then oscillates around zero. A transfer averages over its slots."
        " Fewer of these slots are independent in edgefl, so transfer times vary more than with Jakes's"
        " correlation, but their mean is the same. The figures are Monte Carlo estimates; four standard errors are"
        " allowed.",
    )


def _bartlett(rho: float, lag: int, count: int) -> float:
    """Return the standard error of a correlation sampled from a Gauss-Markov process (Bartlett's formula)."""
    square = rho**2
    once = (1 + square) * (1 - square**lag) / (1 - square) - 2 * lag * square**lag
    return math.sqrt(once / count)


def rates() -> Section:
    """Compare mean rates of the CQI table with Shannon's rates, capped at the table's highest rate."""
    rows = []
    for snr_db in (-5.0, 0.0, 5.0, 10.0, 20.0, 30.0):
        snr = float(db_to_linear(snr_db))
        shannon = float(ergodic_rate(snr, 7.4063))
        rows.append(
            Row(
                f"mean over Rayleigh fading at {snr_db:g} dB",
                shannon,
                float(Steps(2.0).mean_efficiency(snr)),
                "bit/s/Hz",
            )
        )
    return Section(
        "Rates",
        "Shannon's rate, capped at the table's highest rate of 7.4 bit/s/Hz",
        "`edgefl.channel.modulation`, with the rates of 38.214, Table 5.2.2.1-3, 2 dB from Shannon's limit, before"
        " overheads",
        rows,
        "Rates are lower than Shannon's for three reasons: the table is a step function below the curve, real codes"
        " need 2 dB more, and below CQI 1 (-7.5 dB) nothing is transmitted.",
    )


def walls() -> Section:
    """Compare quantiles of the loss through walls with the quantiles of the law's distribution."""
    rng = np.random.default_rng(1)
    count = 200_000
    inside_m = 25.0 * rng.random((2, count)).min(axis=0)
    normal = rng.standard_normal(count)
    rows = []
    kinds: tuple[Walls, Walls] = ("low_loss", "high_loss")
    for kind in kinds:
        wall_db, std_db = wall_loss_db(CARRIER_HZ, kind), STD_DB[kind]
        loss_db = penetration_loss_db(wall_db, std_db, inside_m=inside_m, normal=normal)
        for share in (0.1, 0.5, 0.9):
            law = _quantile(share, wall_db, std_db)
            here, name = float(np.quantile(loss_db, share)), f"{kind}, {share:.0%} quantile"
            rows.append(Row(name, law, here, "dB", 0.08, "channel.way_inside"))
    return Section(
        "Penetration loss",
        "38.901, 7.4.3.1 at 3.5 GHz: the sum of the wall's loss, 0.5 dB/m times the smaller of two uniform distances"
        " up to 25 m, and a normal random variable",
        "`edgefl.channel.penetration`, 200,000 draws",
        rows,
        "The figures are Monte Carlo estimates; four standard errors of the outer quantiles are allowed.",
    )


def _quantile(share: float, wall_db: float, std_db: float) -> float:
    """Return a quantile of the loss by summing over the distance inside, m, with density 2 (1 - m / 25) / 25."""
    inside_m = (np.arange(2500) + 0.5) / 100
    weight = 2 * (1 - inside_m / 25) / 2500
    low, high = wall_db - 50.0, wall_db + 60.0
    for _ in range(60):
        middle = (low + high) / 2
        below = float((weight * stats.norm.cdf(middle, wall_db + INSIDE_DB_PER_M * inside_m, std_db)).sum())
        low, high = (middle, high) if below < share else (low, middle)
    return low


LAWS = (path_loss, shadowing, fading, rates, walls)


# -- the page -----------------------------------------------------------------------------------------


def section_text(section: Section) -> str:
    """Return a section as Markdown."""
    head = f"## {section.title}\n\nReference: {section.reference}. Here: {section.here}.\n\n"
    lines = [
        "| quantity | reference | edgefl | unit | deviation | allowed | fault |",
        "|---|---|---|---|---|---|---|",
    ]
    lines += ["| " + " | ".join(row.cells()) + " |" for row in section.rows]
    return head + "\n".join(lines) + f"\n\n{section.why}\n"


def sections() -> Iterator[Section]:
    """Yield all sections of the page, in order."""
    for law in LAWS:
        yield law()
    import trust_calibration
    import trust_joules
    import trust_rates
    import trust_runs

    yield from trust_calibration.measured(Row, Section)
    yield from trust_rates.measured(Row, Section)
    yield from trust_runs.measured(Row, Section)
    yield trust_joules.joules(Row, Section)


def main() -> None:
    """Write the page, or only its last section."""
    import trust_faults

    page = HERE / "trust.md"
    if sys.argv[1:] == ["faults"]:
        laws = page.read_text().partition(f"\n{trust_faults.HEAD}")[0]
    else:
        laws = "\n".join([HEAD, *map(section_text, sections())])
    page.write_text(f"{laws}\n{trust_faults.text()}")


def _text(value: float) -> str:
    return f"{value:.4g}" if abs(value) < 1000 else f"{value:.0f}"


if __name__ == "__main__":
    sys.path.insert(0, str(HERE))
    main()
