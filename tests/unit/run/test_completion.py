"""Test that the limits of a run are read from its scenario.yaml without the code of its components."""

from pathlib import Path

import pytest

from edgefl.config import registry
from edgefl.run.completion import Length, Lengths
from edgefl.scenario.scenario import dump, load

REQUIRED = {"schedule": {"rounds": 7}, "interval": {"length_s": 60.0}, "daily": {"at_hours": [8]}}


@pytest.mark.parametrize("name", registry.names("sessions"))
def test_the_limits_read_are_those_of_the_policy(name: str, tmp_path: Path) -> None:
    scenario = load(
        {
            "name": "small",
            "duration_s": 100_000.0,
            "devices": {"count": 2},
            "sessions": {"name": name, "count": 3, **REQUIRED.get(name, {})},
            "learning": {"dataset": "digits", "model": "logistic", "evaluation": {"validation": 0.1}},
        }
    )
    (tmp_path / "scenario.yaml").write_text(dump(scenario))
    assert Lengths().of(tmp_path) == Length(100_000.0, 3, scenario.sessions.longest)
