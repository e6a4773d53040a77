"""The radio's presets: what they fill, what wins, and that a written scenario gives the same one again."""

from pathlib import Path
from typing import Any

import pytest

from edgefl.engine.presets import NR
from edgefl.errors import EdgeflError
from edgefl.scenario.scenario import Scenario, dump, load

SMALL = {
    "name": "small",
    "devices": {"count": 3},
    "sessions": {"name": "schedule", "count": 1, "rounds": 1},
    "workload": {"payload_bits": 1000, "flops_per_sample": 1},
}


def scenario(**sections: Any) -> Scenario:
    return Scenario.model_validate({**SMALL, **sections})


def test_a_preset_has_no_null_which_a_written_scenario_could_not_hold() -> None:
    assert all(value is not None for section in NR.values() for value in section.values())


def test_the_journal_is_the_default() -> None:
    assert scenario() == scenario(radio={"preset": "journal"})


def test_nr_fills_what_is_left_out_and_nothing_else() -> None:
    filled = scenario(
        radio={"preset": "nr", "noise_figure_db": 7.0}, devices={"count": 3, "indoor_share": 0.25}
    )
    for section, values in NR.items():
        for key, value in values.items():
            given = {"noise_figure_db": 7.0, "indoor_share": 0.25}.get(key, value)
            assert getattr(getattr(filled, section), key) == given
    # 0.86 x 0.97 of the bits are payload, and a tenth of the blocks goes twice
    assert filled.radio.goodput == pytest.approx(0.86 * 0.97 / 1.1)


def test_a_written_scenario_gives_the_same_again(tmp_path: Path) -> None:
    filled = scenario(radio={"preset": "nr", "t310_s": None, "rates": "shannon"})
    path = tmp_path / "scenario.yaml"
    path.write_text(dump(filled))
    assert dump(load(path)) == dump(filled)
    # every value stands in the file: another version's preset would not change the run
    path.write_text(dump(filled).replace("preset: nr", "preset: journal"))
    assert load(path).radio.model_dump(exclude={"preset"}) == filled.radio.model_dump(exclude={"preset"})


def test_nobody_is_indoors_where_there_are_no_walls() -> None:
    filled = scenario(cell={"radius_m": 100.0}, radio={"preset": "nr", "path_loss": "inh"})
    assert filled.devices.indoor_share == 0.0


@pytest.mark.parametrize(
    ("radio", "remedy"),
    [
        ({"rates": "cqi"}, "set t310_s"),
        ({"preset": "nr", "scheduler": "min_max_latency"}, "set rates: shannon"),
        ({"preset": "nr", "fidelity": "renewal"}, "set fidelity"),
        ({"preset": "nr", "max_efficiency": 0.1}, "below the lowest rate"),
    ],
)
def test_what_does_not_fit_is_refused(tmp_path: Path, radio: dict[str, Any], remedy: str) -> None:
    path = tmp_path / "scenario.yaml"
    path.write_text(dump(scenario()))
    with pytest.raises(EdgeflError, match=remedy):
        load(path, [f"radio={radio}"])
