"""The checks of `edgefl validate`: everything that can be known of a scenario or a study before it runs."""

from collections import Counter
from pathlib import Path

from edgefl import studies
from edgefl.config.yaml_source import Source
from edgefl.run.preview import Preview, preview, preview_all
from edgefl.scenario import scenario
from edgefl.scenario.data_loading import Loaded

MOST_OWN = 6  # lines that only some runs of a study have


def check(path: Path, device: str = "auto", load: Loaded | None = None) -> list[Preview]:
    """Check a scenario or a study (a file with `variants`): build all of it, train nothing, write nothing.

    Data must be on this machine; nothing is downloaded. A study is checked with its first seed.

    Args:
        device: as in `simulate`.
        load: reads the data; None: nothing is downloaded, nor kept for another file.

    Returns:
        What was found of the scenario, or of each variant in each setting.

    Raises:
        EdgeflError: names file, line and remedy.
    """
    source = Source(path)
    if "variants" in source.data:
        return preview_all(studies.plan(path).first_runs(), device, load)
    return [preview(scenario.from_source(source), device, load)]


def summary(previews: list[Preview]) -> list[str]:
    """Say in a few lines what was found in a file; what all runs of a study share is said once."""
    said = Counter(line for each in previews for line in each.lines())
    if len(previews) == 1:
        return list(said)
    own = [f"{line}   ({many} of them)" for line, many in said.items() if many < len(previews)]
    if len(own) > MOST_OWN:
        own = [*own[:MOST_OWN], f"... and {len(own) - MOST_OWN} more lines that not all of them share"]
    shared = [line for line, many in said.items() if many == len(previews)]
    return [f"{len(previews)} runs for each seed; here with the first:", *shared, *own]
