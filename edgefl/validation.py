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
    data = Source(path).data
    if "variants" in data:
        _, scenarios = study.load(path)
        checked = list(scenarios.values())
    else:
        checked = [scenario.load(path)]
    for one in checked:
        _check_data(one)


def _check_data(one: Scenario) -> None:
    if one.learning is not None:
        with one.naming_places(), about("learning", "dataset"):
            one.learning.dataset.check()
