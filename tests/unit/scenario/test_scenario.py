"""Test that errors about a scenario name file, line and remedy, and that a dump loads as the same scenario."""

from pathlib import Path

import pytest

from edgefl.config.yaml_source import Source
from edgefl.errors import EdgeflError
from edgefl.scenario import scenario as scenarios
from tests.refusals import refused_at

GOOD = """\
name: small
devices: {count: 4}
sessions: {name: schedule, count: 2, rounds: 3}
learning:
  dataset: digits
  model: logistic
  algorithm: {name: fedprox, mu: 0.5}
"""


def write(folder: Path, text: str) -> Path:
    path = folder / "a.yaml"
    path.write_text(text)
    return path


def test_dump_is_complete_and_loads_as_the_same(tmp_path: Path) -> None:
    loaded = scenarios.load(write(tmp_path, GOOD))
    text = scenarios.dump(loaded)
    for default in ("radius_m: 250.0", "carrier_hz: 3500000000.0", "lr: 0.01", "name: previous"):
        assert default in text
    again = scenarios.load(write(tmp_path, text))
    assert scenarios.dump(again) == text
    assert again.learning.algorithm.mu == 0.5


def test_every_error_is_reported_at_once(tmp_path: Path) -> None:
    bad = GOOD.replace("count: 4", "count: 0").replace("digits", "digit")
    with pytest.raises(EdgeflError) as error:
        scenarios.load(write(tmp_path, bad))
    assert len(str(error.value).splitlines()) == 2


def test_numbers_as_people_write_them(tmp_path: Path) -> None:
    """PyYAML reads 20e6 as text, but both notations are numbers in a scenario."""
    for number in ("20e6", "20.0e+6", "2.0e7", "20_000_000"):
        path = write(tmp_path, GOOD + f"radio: {{bandwidth_hz: {number}}}\n")
        assert scenarios.load(path).radio.bandwidth_hz == 20e6


def test_overrides(tmp_path: Path) -> None:
    path = write(tmp_path, GOOD)
    keys = ["learning.algorithm.mu=2", "devices.mobility.doppler_speed_m_s=3", "learning.warm_start=average"]
    loaded = scenarios.load(path, keys, 7)
    assert loaded.seed == 7
    assert loaded.learning.algorithm.mu == 2
    assert loaded.devices.mobility.doppler_speed_m_s == 3
    assert type(loaded.learning.warm_start).__name__ == "Average"
    for override, message in [
        ("learning.local.lr", "--set learning.local.lr: write --set KEY=VALUE"),
        ("learning.local.lr=-1", "--set learning.local.lr=-1 learning.local.lr: must be > 0"),
        ("devices={count: -1}", "--set devices={count: -1} devices.count: must be >= 1"),
        ("learning.local.lr.x=1", "'lr' is 0.01 and has no keys below it"),
        ("learnin.lr=1", "--set learnin.lr=1 learnin: unknown key: did you mean 'learning'?"),
        ("learning..lr=1", "is not a dotted key"),
        ("learning.local.lr=[", "is not a YAML value"),
        (
            "devices.count=",
            f"--set devices.count= (on {path}:2) devices: set either count or density_per_km2",
        ),
    ]:
        with refused_at("", message):
            scenarios.load(write(tmp_path, GOOD + "  local: {lr: 0.01}\n"), [override])


def test_later_errors_name_the_line(tmp_path: Path) -> None:
    loaded = scenarios.load(write(tmp_path, GOOD))
    with pytest.raises(EdgeflError, match=r"a\.yaml:5 learning\.dataset: gone"), loaded.naming_places():
        raise EdgeflError("gone", ("learning", "dataset"))


def test_a_scenario_is_frozen(tmp_path: Path) -> None:
    loaded = scenarios.load(write(tmp_path, GOOD))
    for section in (loaded, loaded.radio):
        with pytest.raises(EdgeflError, match=r"cannot be assigned.*with_\("):
            section.__setattr__(next(iter(type(section).model_fields)), 3)


def test_unreadable_files(tmp_path: Path) -> None:
    with refused_at("", "none.yaml"):
        Source(tmp_path / "none.yaml")
    with refused_at("", "a mapping"):
        Source(write(tmp_path, "- 1\n"))
