"""Test clock times in settings: their meaning, refused values, and that a run's scenario.yaml loads back."""

import re
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from edgefl.config.clock import Hour, shown
from edgefl.config.strict import Strict
from edgefl.errors import EdgeflError
from edgefl.scenario import scenario as scenarios

SCENARIO = """\
name: clock
workload: {payload_bits: 1000000, flops_per_sample: 1000}
areas: {mill: {disc: {centre_m: [300, 0], radius_m: 50}}}
sessions: {name: daily, count: 3, at_hours: ["8:30", 17.5, 20:10], begin_hour: "6:15"}
devices:
  count: 4
  mobility:
    name: itinerary
    begin_hour: "06:15:00"
    addresses: {work: mill}
    plan:
      - {leave: "8:00", to: work, spread_min: 15, share: 0.8, days: weekdays}
      - {leave: "17:20", to: home}
"""


class Settings(Strict):
    """Settings with clock times."""

    hour: Hour
    hours: tuple[Hour, ...] = ()


@pytest.mark.parametrize(
    ("written", "hour"),
    [
        ("8:30", 8.5),
        ("08:30:36", 8.51),
        (" 0:00 ", 0.0),
        ("23:59:59", 24 - 1 / 3600),
        (8, 8.0),
        (17.25, 17.25),
        (-0.0, 0.0),
    ],
)
def test_what_a_clock_shows_is_a_number_of_hours(written: Any, hour: float) -> None:
    settings = Settings(hour=written, hours=(written,))
    assert settings.hour == settings.hours[0] == pytest.approx(hour, abs=1e-12)
    assert isinstance(settings.hour, float)
    assert str(settings.hour) != "-0.0"


@pytest.mark.parametrize(
    ("written", "message"),
    [
        ("25:10", "must be an hour of the day, 0:00 to 23:59:59, got '25:10'"),
        ("24:00", "must be an hour of the day"),
        ("8:60", "must be an hour, such as 8.5 or \"8:30\", got '8:60'"),
        ("8:3", "must be an hour"),
        ("8.5", "got '8.5': write 8.5, without quotes, for 8:30"),
        ("7.35", "got '7.35': write \"7:35\", or 7.35, without quotes, for 7:21"),
        ("7.75", "got '7.75': write 7.75, without quotes, for 7:45"),
        ("25.5", "got '25.5'"),
        ("8:30 pm", 'write "20:30"'),
        ("12am", 'write "0:00"'),
        ("noon", "must be an hour"),
        ("{8}", "must be an hour"),
        ("", "must be an hour"),
        (True, "must be an hour"),
        (None, "must be an hour"),
        ([8], "must be an hour"),
        (24, "less than 24"),
        (-1, "greater than or equal to 0"),
        (float("nan"), "nan"),
        (float("inf"), "inf"),
    ],
)
def test_other_words_are_refused_with_a_remedy(written: Any, message: str) -> None:
    for given, place in (({"hour": written}, ("hour",)), ({"hour": 1, "hours": (2, written)}, ("hours", 1))):
        with pytest.raises(ValidationError, match=re.escape(message)) as error:
            Settings.model_validate(given)
        # the error of an impossible number is about the whole key
        assert error.value.errors()[0]["loc"][:1] == place[:1]


def test_an_hour_is_shown_as_clocks_do() -> None:
    assert [shown(hour) for hour in (0.0, 8.5, 8.51, 23.999)] == ["0:00", "8:30", "8:30:36", "23:59:56"]


def test_a_scenario_with_clock_words_loads_back_the_same(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(SCENARIO)
    first = scenarios.load(tmp_path / "a.yaml")
    (tmp_path / "scenario.yaml").write_text(scenarios.dump(first))
    again = scenarios.load(tmp_path / "scenario.yaml")
    assert scenarios.dump(again) == scenarios.dump(first)
    [(_, mobility)] = first.devices.mobilities()
    assert (mobility.begin_hour, mobility.plan[1].leave) == (6.25, 17 + 20 / 60)
    assert first.sessions.at_hours == (8.5, 17.5, 20 + 10 / 60)


@pytest.mark.parametrize(
    ("was", "written", "place"),
    [
        ('leave: "8:00"', 'leave: "25:10"', "devices.mobility.plan.0.leave"),
        ('begin_hour: "06:15:00"', 'begin_hour: "6.15"', "devices.mobility.begin_hour"),
        ("17.5, 20:10", "17.5, 20:70", "sessions.at_hours.2"),
        ("to: work,", "to: wrok,", "devices.mobility.plan.0.to"),
        ("{work: mill}", "{work: mil}", "devices.mobility.addresses.work"),
    ],
)
def test_the_place_of_a_bad_word_is_named(tmp_path: Path, was: str, written: str, place: str) -> None:
    assert was in SCENARIO
    (tmp_path / "a.yaml").write_text(SCENARIO.replace(was, written))
    with pytest.raises(EdgeflError, match=re.escape(place)):
        scenarios.load(tmp_path / "a.yaml")
