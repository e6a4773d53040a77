"""Test that `make lowest` installs the versions that pyproject.toml declares."""

import tomllib
from typing import Any

import pytest

from tests.tools import bounds

PROJECT: dict[str, Any] = {
    "name": "mine",
    "dependencies": ["torch>=2.6", "numpy>=2.0", "rich>=13, !=13.1, <16"],
    "optional-dependencies": {
        "tables": ["pyarrow>=17"],
        "test": ["mine[tables]", "pytest", "flwr[simulation]>=1.41"],
        "docs": ["mkdocs>=1.6"],
    },
}


def test_lowest_are_the_lower_bounds_of_the_project_the_extra_and_those_it_names() -> None:
    """Torch, dependencies without a lower bound, and extras that are not included are left out."""
    assert bounds.lowest(PROJECT, "test") == ["numpy==2.0", "rich==13", "flwr==1.41", "pyarrow==17"]


def test_the_lowest_torch_may_be_asked_for() -> None:
    assert bounds.lowest(PROJECT, "tables", kept="")[0] == "torch==2.6"


def test_extras_that_name_each_other_end() -> None:
    circle = {"a": ["mine[b]"], "b": ["mine[a]", "scipy>=1.13"]}
    assert bounds.lowest(PROJECT | {"optional-dependencies": circle}, "a")[-1] == "scipy==1.13"


def test_a_marker_is_not_passed_over() -> None:
    with pytest.raises(ValueError, match=r"numpy.*marker"):
        bounds.lowest(PROJECT | {"dependencies": ["numpy>=2; python_version>'3.12'"]}, "test")


def test_torch_is_that_of_the_constraints() -> None:
    assert bounds.tested("# torch==1\nnumpy==2.4\ntorch==2.13.0\n") == "torch==2.13.0"


def test_every_run_time_dependency_declares_a_lower_bound() -> None:
    """A dependency without a lower bound is an error, as no job would test its lowest version."""
    project = tomllib.loads((bounds.ROOT / "pyproject.toml").read_text())["project"]
    declared = {
        name
        for name, limits in bounds.requirements(project | {"optional-dependencies": {"none": []}}, "none")
    }
    tried = {line.partition("==")[0] for line in bounds.lowest(project, "test")}
    assert declared - tried == {bounds.KEPT}
