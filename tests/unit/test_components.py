"""Conformance: what holds for every registered component, so that a new file is tested by being there."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from edgefl import registry
from edgefl.describe import describe
from edgefl.errors import EdgeflError
from edgefl.testing import check

TRACE = Path(__file__).parents[1] / "golden" / "sumo_fcd.xml"
# parameters that have no default, per component field name
REQUIRED = {"count": 3, "rounds": 2, "sessions": [[0, 1], [2]], "path": str(TRACE)}
# and those that fit a component to the small world of its check
FITTING = {("mobility", "trace"): {"surplus": "ignore"}}
CLASSES = [(kind, name) for kind in registry.PACKAGES for name in registry.names(kind)]
CHANNEL = [(kind, name) for kind in ("schedulers", "path_loss") for name in registry.names(kind)]


def test_every_kind_has_components() -> None:
    assert {kind for kind, _ in CLASSES + CHANNEL} == set(registry.KINDS)


@pytest.mark.parametrize(("kind", "name"), CLASSES)
def test_component(kind: str, name: str) -> None:
    cls = registry.get(kind, name)
    required = {k: REQUIRED[k] for k, field in cls.model_fields.items() if field.is_required()}
    assert registry.name_of(kind, cls(**required)) == name
    check(cls, **required, **FITTING.get((kind, name), {}))


@pytest.mark.parametrize(("kind", "name"), CLASSES + CHANNEL)
def test_describe(kind: str, name: str) -> None:
    text = describe(f"{kind}/{name}")
    assert text.startswith(f"{kind}/{name}\n\n")
    assert len(text.splitlines()) > 2
    assert "FLOPs per sample" in text or kind != "models"


def test_unknown_names_suggest_the_nearest() -> None:
    with pytest.raises(EdgeflError, match="no algorithm 'fedprx': did you mean 'fedprox'"):
        registry.get("algorithms", "fedprx")
    with pytest.raises(EdgeflError, match="no kind 'algoritms': did you mean 'algorithms'"):
        registry.names("algoritms")
    with pytest.raises(EdgeflError, match="no scheduler 'x'; known: equal_share, max_rate"):
        registry.scheduler("x")


def test_outside_component_by_path(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "my_algorithms.py").write_text(
        "from edgefl.learning.algorithms.fedavg import FedAvg\nclass Mine(FedAvg):\n    '''Mine.'''\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    component = registry.get("algorithms", "my_algorithms:Mine")()
    assert registry.name_of("algorithms", component) == "my_algorithms:Mine"
    with pytest.raises(EdgeflError, match="is not a WarmStart"):
        registry.get("warm_starts", "my_algorithms:Mine")
    with pytest.raises(EdgeflError, match="cannot load 'my_algorithms:Nobody'"):
        registry.get("algorithms", "my_algorithms:Nobody")


def test_the_command_line_starts_without_torch() -> None:
    """`edgefl --help` must not wait for PyTorch."""
    code = "import sys, edgefl.cli; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
