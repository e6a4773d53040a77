"""Test that long lines are wrapped in a terminal, with names and descriptions in columns, but not in a pipe."""

import pytest

from edgefl.commands.folding import folded, tell
from tests.tools.called import code_of

WIDTH = 40


def test_a_name_keeps_its_text_beside_it() -> None:
    found = list(folded(["fedavg  Plain local steps; the server averages them by data size"], WIDTH))
    assert found == ["fedavg  Plain local steps; the server", "        averages them by data size"]


def test_a_long_name_has_its_text_below() -> None:
    name = "a_name_that_is_longer_than_a_column"
    found = list(folded([f"  {name}  what it does, in more words than fit"], WIDTH))
    assert found == [f"  {name}", "      what it does, in more words than", "      fit"]


def test_paragraphs_are_filled_anew_and_blank_lines_stay() -> None:
    lines = ["One line that was broken", "elsewhere, and goes on.", "", "- a point", "", "Another."]
    assert list(folded(lines, WIDTH)) == ["One line that was broken elsewhere, and", "goes on.", *lines[2:]]


def test_a_point_that_was_broken_is_filled_below_its_text() -> None:
    lines = ["- One point, whose text was broken", "  elsewhere, and goes on.", "- Another."]
    assert list(folded(lines, WIDTH)) == [
        "- One point, whose text was broken",
        "  elsewhere, and goes on.",
        "- Another.",
    ]
    assert list(folded(["- One point,", "  short."], WIDTH)) == ["- One point, short."]


def test_words_stay_and_nothing_is_wider() -> None:
    text = "  key: " + "word " * 40 + "(>= 0, default 1e-05)"
    found = list(folded([text], WIDTH))
    assert " ".join(" ".join(found).split()) == " ".join(text.split())
    assert max(map(len, found)) <= WIDTH


def test_in_a_pipe_lines_stay_whole(capsys: pytest.CaptureFixture[str]) -> None:
    line = "name  " + "word " * 40
    tell([line])
    assert capsys.readouterr().out == line + "\n"


@pytest.mark.parametrize("command", [["list", "algorithms"], ["describe", "radio"], ["scenarios"]])
def test_commands_fit_80_columns(
    command: list[str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    code_of(*command)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) > 20
    assert max(map(len, lines)) <= 80


def test_no_first_sentence_ends_at_an_abbreviation(capsys: pytest.CaptureFixture[str]) -> None:
    code_of("scenarios")
    out = capsys.readouterr().out.splitlines()
    assert not [line for line in out if line.endswith(("et al", "Fig", "e.g"))]


def test_help_tells_what_arguments_are(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Help explains arguments; it did not with typer 0.20 on click 8.5, which pyproject.toml excludes."""
    monkeypatch.setenv("COLUMNS", "120")
    code_of("run", "--help")
    assert "Scenario YAML, or the name of a shipped scenario" in " ".join(
        capsys.readouterr().out.replace("│", " ").split()
    )
