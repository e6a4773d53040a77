"""Test the section of a report that answers a study's question."""

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from edgefl.analysis import load_runs
from edgefl.analysis.html.answer import WIDEST, answer, with_units_kept
from tests.unit.analysis.conftest import write_run

Made = Callable[..., str]


@pytest.fixture
def made(tmp_path: Path) -> Made:
    """Return a function that answers a question from runs of one round: variant -> latency and accuracy per seed."""

    def make(**variants: list[tuple[float, float]]) -> str:
        for variant, seeds in variants.items():
            for seed, (latency_s, accuracy) in enumerate(seeds, 1):
                row = {"session": 1, "round": 1, "latency_s": latency_s, "accuracy": accuracy}
                about = {"variant": variant, "seed": seed, "reference": "ours"}
                write_run(tmp_path / variant / str(seed), [row], [{"session": 1}], **about)
        return answer(load_runs(tmp_path))

    return make


def test_bars_are_as_long_as_their_numbers(made: Made) -> None:
    """Bars of 10 and 20 s have widths of 46 % and 92 %; energy is 5 J in both variants."""
    text = made(ours=[(10.0, 0.9)], slow=[(20.0, 0.9)])
    widths = [float(number) for number in re.findall(r'<b style="width:([\d.]+)%"', text)]
    assert widths == pytest.approx([50 * WIDEST, 100 * WIDEST, 100 * WIDEST, 100 * WIDEST])
    assert "slow needs 2.0\u00a0times the time of ours to 95\u00a0% of peak" in text
    assert "20.0\u00a0s" in text
    assert "5.00\u00a0J" in text
    assert "<i " not in text  # one seed has no interval


def test_a_missed_target_is_hatched_and_an_interval_stays_in_its_room(made: Made) -> None:
    text = made(ours=[(10.0, 0.9), (20.0, 0.9)], never=[(20.0, 0.1), (20.0, 0.1)])
    assert text.count("class=bound") == 2
    assert "&gt;20.0\u00a0s" in text
    for left, width in re.findall(r'<i style="left:([\d.]+)%;width:([\d.]+)%"', text):
        assert 0 <= float(left) <= float(left) + float(width) <= 100.01


def test_an_interval_ends_at_its_number(made: Made) -> None:
    """The range of 30 and 50 s ends at 92 % of the width, its bar of 40 s at four fifths of this."""
    text = made(ours=[(10.0, 0.9), (20.0, 0.9)], slow=[(30.0, 0.9), (50.0, 0.9)])
    (_, bar, *_), (_, whisker, *_) = (re.findall(f"<{tag} style=.*?>", text) for tag in "bi")
    left, width = map(float, re.findall(r"[\d.]+", whisker))
    assert left + width == pytest.approx(100 * WIDEST, abs=0.02)
    assert float(re.findall(r"[\d.]+", bar)[0]) == pytest.approx(0.8 * 100 * WIDEST, abs=0.02)


def test_an_interval_of_many_lengths_of_the_bars_is_marked(made: Made) -> None:
    wide = made(ours=[(1.0, 0.9), (1.0, 0.9), (40.0, 0.9)], slow=[(30.0, 0.9), (31.0, 0.9), (32.0, 0.9)])
    assert wide.count("<i class=cut") == 1  # from below a second to hours


def test_what_the_numbers_depend_on_is_noted_with_them(made: Made, tmp_path: Path) -> None:
    """A comparison's notes are in the answer, but not those of the runs, which stand with the page's tables."""
    made(narrow=[(10.0, 0.9)], wide=[(10.0, 0.9)])
    for name, hz, dbm in (("narrow", 5e6, 31.0), ("wide", 20e6, 37.0)):
        radio = {"bandwidth_hz": hz, "budget": {"server_power_dbm": dbm}}
        (tmp_path / name / "1" / "scenario.yaml").write_text(yaml.safe_dump({"radio": radio}))
        about = json.loads((tmp_path / name / "1" / "run.json").read_text()) | {"notes": ["one of the run"]}
        (tmp_path / name / "1" / "run.json").write_text(json.dumps(about | {"reference": None}))
    text = answer(load_runs(tmp_path))
    assert "<li>sites send with 31 dBm at 5 MHz and 37 dBm at 20 MHz: " in text
    assert "one of the run" not in text


def test_one_variant_asks_nothing_and_names_are_no_markup(made: Made) -> None:
    assert made(ours=[(10.0, 0.9)]) == ""
    assert "<x>" not in made(**{"<x>": [(10.0, 0.9)]})


def test_numbers_keep_their_units() -> None:
    assert (
        with_units_kept("after 2.20 s and 21 J, 95 % sure")
        == "after 2.20\u00a0s and 21\u00a0J, 95\u00a0% sure"
    )
