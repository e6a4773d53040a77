"""The checks of `edgefl validate`: everything that can be known before a run."""

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
    for loaded in [case.scenario for case in cases] or [scenario.load(path)]:
        _check_data(loaded)


def _check_data(scenario: Scenario) -> None:
    if scenario.learning is not None:
        with scenario.naming_places(), about("learning", "dataset"):
            scenario.learning.dataset.check()
