"""Compare a study's variants, in each setting if there is a grid, and along a key that the grid sweeps."""

from collections.abc import Callable
from inspect import unwrap
from pathlib import Path
from typing import Any

from edgefl.analysis.page.report import Found
from edgefl.analysis.reports.comparison import compare
from edgefl.analysis.reports.settings import compare_settings
from edgefl.analysis.reports.sweep import grid_key, sweep
from edgefl.analysis.runs.load import Paths, load_runs, load_settings


def answers(runs: Paths, *, out: str | Path | None = None, write: bool = True) -> list[Found]:
    """Measure a study's main result first, and with a swept key also the comparison in every setting.

    Args:
        write: whether to write the files of each answer.

    Raises:
        ValueError: there is nothing to compare.
    """

    def measured(measure: Callable[..., Found], *args: Any, **options: Any) -> Found:
        return (measure if write else unwrap(measure))(*args, out=out, **options)

    by_setting = load_settings(runs)
    if not any(by_setting):
        return [measured(compare, load_runs(runs))]
    swept = [measured(sweep, by_setting)] if grid_key(by_setting) else []
    if swept and by_setting.info["variant"].nunique() == 1:
        return swept  # no variants to compare in a setting
    return [*swept, measured(compare_settings, by_setting)]
