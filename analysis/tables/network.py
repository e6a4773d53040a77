"""The key figures of the network in words and rounded numbers."""

import math
from collections.abc import Callable

import pandas as pd

from edgefl.analysis.formatting import NOTHING
from edgefl.analysis.tables.runs import named_runs


def headline(figures: pd.DataFrame) -> pd.DataFrame:
    """Write the key figures as text, [runs x figures]; of many runs, [variants x figures]."""
    named = named_runs(figures)
    return pd.DataFrame(
        {
            "Handovers": named["handovers"].map("{:,.0f}".format),
            "per device and hour of service": named["handovers_per_device_hour"].map(_or_nothing("{:.1f}")),
            "Ping-pong (%)": (100 * named["ping_pong_share"]).map(_or_nothing("{:.1f}")),
            "Time of stay (s)": named["time_of_stay_s"].map(_or_nothing("{:.2f}")),
            "Interrupted (s)": named["interruption_s"].map("{:,.2f}".format),
            "Interrupted, of this time (%)": (100 * named["interruption_share"]).map(_or_nothing("{:.3f}")),
            "Participations broken": named["broken"].map(_or_nothing("{:,.0f}")),
            "Wasted (Mbit)": (named["wasted_bits"] / 1e6).map(_or_nothing("{:.2f}")),
            "Wasted (J)": named["wasted_j"].map(_or_nothing("{:.4g}")),
            "Wasted, of all joules (%)": (100 * named["wasted_share"]).map(_or_nothing("{:.1f}")),
        }
    )


def _or_nothing(form: str) -> Callable[[float], str]:
    """Format a number; a run without handovers, devices or their rows has none."""
    return lambda value: NOTHING if math.isnan(value) else form.format(value)
