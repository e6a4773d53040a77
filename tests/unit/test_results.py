"""Rows by column are the rows written one by one."""

from pathlib import Path

import numpy as np
import pytest

from edgefl.engine.records import Event
from edgefl.results import RunDirectory
from edgefl.scenario import Scenario

SCENARIO = {
    "name": "rows",
    "devices": {"count": 5},
    "sessions": {"name": "schedule", "count": 1, "rounds": 1},
    "workload": {"payload_bits": 1, "flops_per_sample": 1},
}


@pytest.fixture
def run(tmp_path: Path) -> RunDirectory:
    return RunDirectory(tmp_path, Scenario.model_validate(SCENARIO), {})


def test_columns_are_written_like_rows(run: RunDirectory) -> None:
    stays_s = [0.1 + 0.2, 1234.56789012345]
    run.write(
        *(
            Event(7.2, "handover", device, None, 1, None, stay_s, 0.05, detail)
            for device, stay_s, detail in zip((3, 4), stays_s, ("ping_pong", ""), strict=True)
        )
    )
    run.write_columns(
        Event,
        time_s=7.2,
        event="handover",
        device=np.array([3, 4]),
        session=None,
        cell=np.array([1, 1]),
        stay_s=np.array(stays_s),
        interruption_s=0.05,
        detail=np.array(["ping_pong", ""]),
    )
    run.flush()

    _, *lines = (run.path / "events.csv").read_text().splitlines()
    assert lines[:2] == ["7.2,handover,3,,1,,0.3,0.05,ping_pong", "7.2,handover,4,,1,,1234.567890123,0.05,"]
    assert lines[2:] == lines[:2]


def test_an_unknown_column_is_refused(run: RunDirectory) -> None:
    with pytest.raises(KeyError, match="Event has no colour"):
        run.write_columns(Event, colour="red")


def test_a_missing_column_is_refused(run: RunDirectory) -> None:
    with pytest.raises(TypeError, match="time_s"):
        run.write_columns(Event, event="handover", device=np.array([3]), session=None)
