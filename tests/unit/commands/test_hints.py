"""Test that an unknown option is answered with the commands that have it, or with a similar option."""

import pytest

from edgefl.commands.cli import main


@pytest.mark.parametrize(
    ("arguments", "hint"),
    [
        ("study a.yaml --target 0.7", "belongs to `edgefl compare` and `edgefl sweep`."),
        ("settings runs --target=0.7", "belongs to `edgefl compare` and `edgefl sweep`."),
        ("network runs --explain", "`edgefl study`, `edgefl compare`, `edgefl sweep` and `edgefl settings`."),
        ("compare runs --jobs 3", "belongs to `edgefl study`."),
        ("preview a.yaml --seed 3", "and `edgefl record`. Here, write --set seed=N."),
        ("compare runs --seed 3", "and `edgefl record`."),
        ("run a.yaml --ouut b", "--out"),  # click's words and quotes depend on its version
        ("run a.yaml --zebra", "No such option"),
        ("run quickstart --seed 1 --seed 2", "takes one value, not 1 and 2"),
    ],
)
def test_the_commands_of_an_option(arguments: str, hint: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(arguments.split())
    assert ended.value.code == 2
    shown = " ".join(capsys.readouterr().err.replace("\u2502", " ").split())
    assert f"Try 'edgefl {arguments.split()[0]} -h' for help." in shown
    assert hint in shown
