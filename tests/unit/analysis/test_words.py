"""Test that sentences are wrapped between words in a terminal but not in a pipe, and that paths are not broken."""

import io

from rich.text import Text

from edgefl.analysis.page.words import Words

SENTENCE = "more: some/folder/with/a/name/comparison.md; how to [read] this :car:"


def printed(text: Text | str, *, terminal: bool) -> list[str]:
    file = io.StringIO()
    Words(file=file, force_terminal=terminal, color_system=None, width=20).print(text, soft_wrap=True)
    return [line.rstrip() for line in file.getvalue().splitlines()]


def test_a_terminal_breaks_between_words() -> None:
    assert printed(SENTENCE, terminal=True) == [
        "more:",
        "some/folder/with/a/name/comparison.md;",
        "how to [read] this",
        ":car:",
    ]


def test_a_pipe_has_the_whole_line() -> None:
    assert printed(SENTENCE, terminal=False) == [SENTENCE]


def test_a_command_that_one_can_copy_stays_whole() -> None:
    assert printed(Text("next: edgefl report runs/quickstart", no_wrap=True), terminal=True) == [
        "next: edgefl report runs/quickstart"
    ]


def test_a_text_stays_in_its_column() -> None:
    assert printed("a round   0.2 s and 23 J", terminal=True) == ["a round   0.2 s and", "          23 J"]


def test_a_number_stays_with_its_unit() -> None:
    assert printed("a share of about 95 % (98.7 kJ), 7 steps", terminal=True) == [
        *("a share of about", "95 % (98.7 kJ), 7", "steps")
    ]
