"""Test the scores after 100 rounds with every registered codec, in each direction, with and without feedback."""

from pathlib import Path

import pytest

from edgefl.config import registry
from tests.tools import codecs
from tests.tools.codecs import Case, Trial, cases

PAGE = Path(__file__).parents[3] / "docs" / "codecs.md"


@pytest.fixture(scope="module")
def digits() -> Trial:
    return Trial("digits")


def test_whole_models_learn(digits: Trial) -> None:
    assert digits.whole.loss < digits.whole.loss_before / 4
    assert digits.whole.accuracy > 85


@pytest.mark.parametrize(
    "case",
    # codecs without feedback are rarely used, and only tested at night
    [pytest.param(case, marks=[pytest.mark.always] * (case.feedback is not False)) for case in cases()],
    ids=str,
)
def test_every_codec_learns_each_way_with_and_without_feedback(case: Case, digits: Trial) -> None:
    """The loss falls, and codecs end within three points of no codec, except lossy codecs without feedback."""
    assert digits.faults(case, digits.learned(**case.learning)) == []


def test_the_page_has_all_codecs(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """The page's table has the tool's header and a row per codec; `make codecs` computes the table."""
    monkeypatch.setattr(codecs, "ROUNDS", 2)
    codecs.main(["--dataset", "digits"])
    printed = [line for line in capsys.readouterr().out.splitlines() if line.startswith("|")]
    page = PAGE.read_text().splitlines()
    begin = page.index(printed[0])
    rows = page[begin : begin + len(printed)]
    assert [row.split("|")[1] for row in rows] == [row.split("|")[1] for row in printed]
    assert len(printed) == 2 + len(registry.names("codecs"))
