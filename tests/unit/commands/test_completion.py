"""Test shell completion of `edgefl ...` with the tab key."""

import pytest
import typer

from edgefl.analysis.commands import line
from edgefl.commands import cli
from tests.tools.called import code_of


@pytest.mark.parametrize(
    ("typed", "offered", "not_offered"),
    [
        ("edgefl run quick", ["quickstart"], ["city_day"]),
        ("edgefl study learn", ["learning_rate"], ["quickstart"]),
        ("edgefl describe algorithms/fedp", ["algorithms/fedprox"], ["algorithms/fedavg"]),
        ("edgefl describe radio.bandw", ["radio.bandwidth_hz"], ["radio.preset"]),
        ("edgefl describe ra", ["radio"], ["radio.bandwidth_hz"]),
        ("edgefl list mob", ["mobility"], ["models"]),
        ("edgefl doc", ["doctor"], ["run"]),
        ("edgefl run quickstart --set radio.bandw", ["radio.bandwidth_hz="], ["radio.preset="]),
        ("edgefl run quickstart --set learning.lo", ["learning.local."], ["learning.local.lr="]),
        ("edgefl run quickstart --set see", ["seed="], ["radio."]),
        (
            "edgefl preview quickstart --set radio.sharing=d",
            ["radio.sharing=dynamic"],
            ["radio.sharing=static"],
        ),
        (
            "edgefl validate quickstart --set rounds.server=fed",
            ["rounds.server=fedbuff"],
            ["rounds.server=tiers"],
        ),
        ("edgefl record quickstart --set record.energy_excess=t", ["record.energy_excess=true"], []),
    ],
)
def test_a_shell_is_offered_what_fits(
    typed: str,
    offered: list[str],
    not_offered: list[str],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("_EDGEFL_COMPLETE", "complete_bash")
    monkeypatch.setenv("COMP_WORDS", typed)
    monkeypatch.setenv("COMP_CWORD", str(len(typed.split()) - 1))
    code_of()
    words = capsys.readouterr().out.split()
    assert set(offered) <= set(words)
    assert not set(not_offered) & set(words)


def test_every_command_is_in_a_panel_of_help() -> None:
    names = [name for names in cli.PANELS.values() for name in names.split()]
    assert sorted(names) == sorted(set(names))
    assert set(typer.main.get_command(cli.app).commands) == set(names)  # type: ignore[attr-defined]
    reading = {one.callback.__name__ for one in line.app.registered_commands if one.callback}
    assert reading <= set(names)
