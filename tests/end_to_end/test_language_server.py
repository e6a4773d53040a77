"""Test the YAML language server's completions and diagnostics in scenarios and studies, with schemas by modeline."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from edgefl.config import registry
from tests.tools.language_server import NODE, PROGRAM, Server, language_server

SCENARIOS = Path(__file__).parents[2] / "scenarios"
FILES = [*sorted(SCENARIOS.glob("*.yaml")), *sorted(SCENARIOS.glob("studies/*.yaml"))]
QUICKSTART, STUDY = SCENARIOS / "quickstart.yaml", SCENARIOS / "studies" / "quickstart.yaml"

pytestmark = pytest.mark.skipif(
    NODE is None or PROGRAM is None, reason="no node or yaml-language-server: `make editor`"
)


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with language_server(SCENARIOS) as running:
        yield running


def quickstart(old: str, new: str) -> str:
    """Return the quickstart with `old` replaced by `new` and without comments; | marks the cursor."""
    text = re.sub(" +#.*", "", QUICKSTART.read_text())
    assert "|" not in text
    assert text.count(old) == 1
    return text.replace(old, new)


def test_no_shipped_file_is_marked(server: Server) -> None:
    assert len(FILES) > 50
    found = {file.name: server.complaints(file, file.read_text()) for file in FILES}
    assert {name: marks for name, marks in found.items() if marks} == {}


WRONG = {
    "unknown key": ("count: 40", "number: 40", "number", "Property number is not allowed"),
    "text for a number": ("count: 40", "count: many", "count: many", 'Expected "integer'),
    "below its range": ("count: 40", "count: -40", "count: -40", "below the minimum of 1"),
    "megahertz for hertz": (
        "seed: 100", "radio: {bandwidth_hz: 100}\nseed: 100", "radio:", "below the minimum of 100000",
    ),
    "another unit's name": (
        "seed: 100", "radio: {bandwidth_mhz: 100}\nseed: 100", "radio:", "bandwidth_mhz is not allowed",
    ),
    "another component's parameter": ("mu: 1.0", "beta: 1.0", "beta", "beta is not allowed"),
    "unknown component": ("model: logistic", "model: logistik", "logistik", 'Valid values: "cnn2", "logistic"'),
    "missing key": ("name: quickstart\n", "", "seed", 'Missing property "name"'),
    "key twice": ("lr: 0.003", "lr: 0.003\n  lr: 0.004", "lr: 0.004", "keys must be unique"),
}  # fmt: skip


@pytest.mark.parametrize("wrong", WRONG.values(), ids=WRONG.keys())
def test_what_is_wrong_is_marked_where_it_stands(wrong: tuple[str, str, str, str], server: Server) -> None:
    old, new, at, message = wrong
    text = quickstart(old, new)
    ((line, said),) = server.complaints(QUICKSTART, text)
    assert message in said
    assert at in text.splitlines()[line - 1]


OFFERED = {
    "sections": ("devices:\n", "|\ndevices:\n", {"radio", "rounds", "workload"}, {"devices", "mu"}),
    "a section's keys": ("devices:\n", "radio:\n  |\ndevices:\n", {"bandwidth_hz", "path_loss"}, {"count"}),
    "keys not yet there": ("  lr: 0.003", "  |\n  lr: 0.003", {"epochs", "drift"}, {"lr", "batch"}),
    "a component's parameters": ("    scale: 10\n", "    |\n", {"scale", "history"}, {"mu", "rounds"}),
    "components": ("model: logistic", "model: |", {"logistic", "resnet18"}, {"factory", "fedprox"}),
    "components by name": (
        "algorithm: {name: fedprox, mu: 1.0}", "algorithm:\n    name: |",
        set(registry.names("algorithms")), {"similarity"},
    ),
    "components with these parameters": (
        "name: similarity", "name: |", {"similarity"}, {"previous", "average"},
    ),
    "choices": ("devices:\n", "record:\n  tables: |\ndevices:\n", {"csv", "parquet"}, {"uma"}),
}  # fmt: skip


@pytest.mark.parametrize("offer", OFFERED.values(), ids=OFFERED.keys())
def test_what_fits_is_offered(offer: tuple[str, str, set[str], set[str]], server: Server) -> None:
    old, new, some, none = offer
    offered = set(server.completions(QUICKSTART, quickstart(old, new)))
    assert some - offered == set()
    assert none & offered == set()


def test_a_studys_overrides_are_offered_and_checked(server: Server) -> None:
    text = STUDY.read_text().rstrip() + "\n  new:\n    %s\n"
    assert {"radio.bandwidth_hz", "learning.local.lr"} <= set(server.completions(STUDY, text % "|"))
    assert server.complaints(STUDY, text % "radio.bandwidth_hz: 5.0e+7") == []
    marked = server.complaints(STUDY, text % "radio.bandwith_hz: 5.0e+7")
    assert ["radio.bandwith_hz" in said for _, said in marked] == [True]


def test_a_key_says_what_it_means(server: Server) -> None:
    said = server.hover(QUICKSTART, quickstart("mu: 1.0", "m|u: 1.0"))
    assert "weight of the proximal term" in said
