"""A cluster that fails while it is used is one error, whatever was asked of it."""

import sys
from types import SimpleNamespace

import pytest

from edgefl.errors import EdgeflError
from edgefl.run.ray_cluster import connected


class RayError(Exception):
    """As in Ray, of which all its own errors are."""


class ObjectStoreFullError(RayError):
    """As in Ray."""


RAY = SimpleNamespace(
    is_initialized=lambda: True,
    exceptions=SimpleNamespace(RayError=RayError, ObjectStoreFullError=ObjectStoreFullError),
)


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (
            ObjectStoreFullError("full\nand more"),
            r"is full \(full\); start its nodes with a larger --object-store",
        ),
        (RayError("the owner is gone"), r"has failed \(RayError: the owner is gone\); see `ray status`"),
        (RayError(), r"has failed \(RayError: \)"),
    ],
)
def test_what_ray_raises_is_one_error_with_a_remedy(
    error: Exception, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "ray", RAY)
    with pytest.raises(EdgeflError, match=said + ".*`edgefl resume` with a run"), connected("auto"):
        raise error


@pytest.mark.parametrize("error", [EdgeflError("bad scenario"), KeyboardInterrupt(), ValueError("mine")])
def test_other_errors_pass(error: BaseException, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", RAY)
    with pytest.raises(type(error)) as told, connected("auto"):
        raise error
    assert told.value is error
