"""The checks of `edgefl validate`: everything that can be known before a run."""

from pathlib import Path

from edgefl import memory_needs, scenario, study
from edgefl.errors import about
from edgefl.scenario import Scenario
from edgefl.yaml_source import Source


def check(path: Path) -> None:
    """Check a scenario or a study (a file with `variants`), including that its data are there.

    Raises:
        EdgeflError: names file, line and remedy.
    """
    source = Source(path)
    if "variants" in source.data:
        loaded = [case.scenario for case in study.load(path)[1]]
    else:
        loaded = [scenario.from_source(source)]
    for each in loaded:
        with each.naming_places():
            memory_needs.check(each)
        _check_data(each)


def _check_data(scenario: Scenario) -> None:
    if scenario.learning is not None:
        with scenario.naming_places(), about("learning", "dataset"):
            scenario.learning.dataset.check()
