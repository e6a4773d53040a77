"""The key figures of the network in words and rounded numbers."""

import math
from collections.abc import Callable

import pandas as pd

from analysis.formatting import NOTHING


def headline(figures: pd.DataFrame) -> pd.DataFrame:
    """Write the key figures as text, [runs x figures]."""
    named = figures.set_index(figures["variant"] + " seed " + figures["seed"].astype(str))
    return pd.DataFrame(
        {
            "Handovers": named["handovers"].map("{:,}".format),
            "per device and hour of service": named["handovers_per_device_hour"].map(_or_nothing("{:.1f}")),
            "Ping-pong (%)": (100 * named["ping_pong_share"]).map(_or_nothing("{:.1f}")),
            "Time of stay (s)": named["time_of_stay_s"].map(_or_nothing("{:.2f}")),
            "Interrupted (s)": named["interruption_s"].map("{:,.2f}".format),
            "Interrupted, of this time (%)": (100 * named["interruption_share"]).map(_or_nothing("{:.3f}")),
            "Participations broken": named["broken"].map("{:,}".format),
            "Wasted (Mbit)": (named["wasted_bits"] / 1e6).map("{:.2f}".format),
            "Wasted (J)": named["wasted_j"].map("{:.4g}".format),
            "Wasted, of all joules (%)": (100 * named["wasted_share"]).map("{:.1f}".format),
        }
    )


def _or_nothing(form: str) -> Callable[[float], str]:
    """Format a number; a run without handovers, or without devices, has none."""
    return lambda value: NOTHING if math.isnan(value) else form.format(value)
