"""`edgefl validate`: everything that can be known before a run."""

from pathlib import Path

from edgefl import scenario, study
from edgefl.errors import about
from edgefl.scenario import Scenario
from edgefl.yaml_source import Source


def check(path: Path) -> None:
    """Check a scenario or a study (a file with `variants`), including that its data are there.

    Raises:
        EdgeflError: names file, line and remedy.
    """
    cases = study.load(path)[1] if "variants" in Source(path).data else []
    for one in [case.scenario for case in cases] or [scenario.load(path)]:
        _check_data(one)


def _check_data(one: Scenario) -> None:
    if one.learning is not None:
        with one.naming_places(), about("learning", "dataset"):
            one.learning.dataset.check()
