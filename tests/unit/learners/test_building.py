"""Test that torch devices are chosen by name, on machines with any number of GPUs."""

import pytest
import torch

from edgefl.learners.building import Means, torch_device
from tests.refusals import refused_at


@pytest.fixture
def cards(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    count = request.param
    monkeypatch.setattr(torch.cuda, "is_available", lambda: count > 0)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: count)


@pytest.mark.usefixtures("cards")
@pytest.mark.parametrize(
    ("cards", "name", "device"),
    [
        (0, "auto", "cpu"),
        (0, "cpu", "cpu"),
        (2, "auto", "cuda"),
        (2, "cpu", "cpu"),
        (2, "cuda", "cuda"),
        (2, "cuda:0", "cuda:0"),
        (2, "cuda:1", "cuda:1"),
    ],
    indirect=["cards"],
)
def test_a_name_is_a_device(name: str, device: str) -> None:
    assert torch_device(name) == torch.device(device)


@pytest.mark.usefixtures("cards")
@pytest.mark.parametrize(
    ("cards", "name", "says"),
    [
        (0, "cuda", "finds no CUDA device here; use --device cpu or auto"),
        (0, "cuda:1", "finds no CUDA device here"),
        (1, "cuda:1", "this machine has cuda:0; choose"),
        (3, "cuda:3", "this machine has cuda:0 to cuda:2"),
        (1, "mps", "finds no Apple GPU here; use --device cpu or auto"),
        (1, "mps:0", "choose auto, cpu, cuda, cuda:N or mps"),
        (1, "cpu:0", "choose auto, cpu, cuda, cuda:N or mps"),
        (1, "cuda:", "choose auto, cpu, cuda, cuda:N or mps"),
        (1, "cuda:x", "choose auto, cpu, cuda, cuda:N or mps"),
    ],
    indirect=["cards"],
)
def test_a_device_that_is_not_there_is_refused(name: str, says: str) -> None:
    with refused_at("", f"--device {name}: ", says):
        torch_device(name)


def test_a_run_that_trains_nothing_refuses_a_misspelt_device_too() -> None:
    with refused_at("", "--device cdua: choose auto, cpu, cuda, cuda:N or mps"):
        Means("cdua", threads=1, load=None)


def test_apples_gpu_is_a_device_where_there_is_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: True)
    assert torch_device("mps") == torch.device("mps")
