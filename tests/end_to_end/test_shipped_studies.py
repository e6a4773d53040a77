"""Test that every shipped study can be read and all its cases validated, even without its data set."""

from pathlib import Path

import pytest

from edgefl import studies
from edgefl.config.yaml_source import Source
from edgefl.scenario.scenario import Scenario
from edgefl.studies.study_file import Study

STUDIES = sorted((Path(__file__).parents[2] / "scenarios" / "studies").glob("*.yaml"))


@pytest.mark.parametrize("path", STUDIES, ids=lambda path: path.stem)
def test_study(path: Path) -> None:
    planned, content = studies.plan(path, seeds=[100]), Source(path).validate(Study)
    assert planned.name == path.stem
    settings = 1
    for points in content.grid.values():
        settings *= len(points)
    assert len(planned.runs) == settings * len(content.variants)
    assert len({run.path for run in planned.runs}) == len(planned.runs)


def learning(name: str, variant: str, **setting: str) -> Scenario:
    """Return the scenario of the first run with this variant and these labels of its setting."""
    for run in studies.plan(STUDIES[0].parent / f"{name}.yaml", seeds=[100]).runs:
        if run.member.variant == variant and setting.items() <= run.member.setting.items():
            return run.scenario
    raise AssertionError(f"no such case: {variant}, {setting}")


def test_table_x_is_run_as_its_authors_did() -> None:
    """The study has the learning rates of the authors' files, and their versions of `continuous` and SCAFFOLD."""
    name = "journal_table_x_fashion_mnist_as_run"
    proposed = learning(name, "similarity", algorithm="fedacg", overlap="0.2").learning
    assert proposed is not None
    assert (proposed.local.lr, proposed.local.lr_floor, proposed.local.lr_power, proposed.local.probe_lr) == (
        0.003,
        0.3,
        0.9,
        0.5,
    )
    assert (proposed.after_pilot, proposed.warm_start.distance) == ("continue", "unit_tensors")
    assert proposed.partition.session_labels(2, 10, None).tolist() == [4, 5, 6, 7, 8]
    distilled = learning(name, "continuous", algorithm="scaffold").learning
    assert distilled is not None
    assert (type(distilled.algorithm).__name__, distilled.local.lr, distilled.local.lr_floor) == (
        "FedAvg",
        0.03,
        0.9,
    )
    assert (distilled.after_pilot, distilled.warm_start.classes) == ("restart", "all")
    scaffold = learning(name, "previous", algorithm="scaffold").learning
    assert scaffold is not None
    assert (scaffold.algorithm.beta, scaffold.algorithm.server_lr) == (0.0, 0.03)
