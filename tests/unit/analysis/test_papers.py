"""Test that the list of papers is complete and names existing files, and how numbers are judged."""

import math
from pathlib import Path
from types import SimpleNamespace

import pandas as pd
import pytest

import edgefl
from edgefl.analysis.commands.line import main
from edgefl.analysis.reports import papers as known
from edgefl.analysis.reports.papers import COLUMNS, OURS, agrees, audit, compared, paper, papers
from edgefl.analysis.reports.reproduction import PAPERS, Reproduction
from edgefl.examples.papers.fedl import rows as fedl_rows

ROMAN = ["I", "II", "III", "IV", "V", "VI", "VII", "VIII", "IX", "X", "XI", "XII", "XIII", "XIV"]
# number of tables and figures in each paper
CONTENTS = {
    "journal": (ROMAN, 6),
    "conference": ([str(n) for n in range(1, 17)], 4),
    "early": ([str(n) for n in range(1, 5)], 4),
    "flash": ([str(n) for n in range(1, 8)], 9),
}
RESULTS = [(one, result) for one in papers() for result in one.results]


@pytest.mark.parametrize("name", CONTENTS)
def test_every_table_and_figure_is_listed(name: str) -> None:
    tables, figures = CONTENTS[name]
    expected = [f"table {table}" for table in tables] + [f"figure {n}" for n in range(1, figures + 1)]
    assert [result.name for result in paper(name).results] == expected


@pytest.mark.parametrize(("one", "result"), RESULTS, ids=lambda each: each.name)
def test_what_a_result_names_exists(one: known.Paper, result: known.Result) -> None:
    """Scripts, scenarios and tables named by a result exist; results have numbers, needs, or a reason for neither."""
    if result.state == "same":
        name, _, rest = result.same.partition(" ")
        assert paper(name).result(rest).state != "same"
        return
    assert result.state in ("ran", "ready", "closed")
    assert result.shows
    assert bool(result.command) == (result.state != "closed")
    assert result.recorded or result.needs or result.why
    root = Path(edgefl.__file__).parents[1]
    if result.script:
        assert (root / "examples" / "papers" / f"{result.script}.py").is_file()
        assert result.recorded in ((result.script,), ())  # a paper may have a ranking without numbers
        assert result.minutes > 0
    elif result.command:
        verb, name = result.command.split()[1:]
        assert (root / "scenarios" / ("studies" if verb == "study" else ".") / f"{name}.yaml").is_file()
    tables = [pd.read_csv(OURS / f"{name}.csv", comment="#") for name in result.recorded]
    for table in tables:
        assert list(table.columns) == COLUMNS
        assert set(table["unit"]) <= {"points", "rounds", "seconds", "joules", "ratio"}
        assert table[["theirs", "ours", "seeds"]].notna().all(axis=None)
    assert len(compared(result)) == sum(map(len, tables))


def test_every_recorded_file_belongs_to_a_result() -> None:
    named = [name for _, result in RESULTS for name in result.recorded]
    assert sorted(named) == sorted(file.stem for file in OURS.glob("*.csv"))


@pytest.mark.parametrize(
    ("numbers", "expected"),
    [
        (("points", 80.0, math.nan, 82.0, math.nan, 1), True),  # two points
        (("points", 80.0, math.nan, 82.1, math.nan, 1), False),
        (("points", 80.0, math.nan, 83.0, 3.0, 4), True),  # 2 x 3 / sqrt(4) = 3
        (("points", 80.0, math.nan, 83.1, 3.0, 4), False),
        (("points", 80.0, 3.0, 84.8, 3.0, 3), True),  # 2 sqrt(9/3 + 9/3) = 4.90
        (("points", 80.0, 3.0, 85.0, 3.0, 3), False),
        (("rounds", 100.0, math.nan, 114.9, math.nan, 1), True),  # 15 %
        (("rounds", 100.0, math.nan, 115.1, 50.0, 4), False),  # only bands in points depend on std
        (("seconds", 2.0, math.nan, 1.72, math.nan, 1), True),
    ],
)
def test_bands(numbers: tuple[str, float, float, float, float, int], expected: bool) -> None:
    assert agrees(*numbers) is expected


def test_a_study_is_recorded_beside_the_papers_numbers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(known, "OURS", tmp_path)
    table = pd.DataFrame(
        {
            "alpha": ["0.3", "0.3", "0.7"],
            "variant": ["similarity", "average", "average"],
            "session": [5, 5, 7],
            "ours": [83.0, 70.0, math.nan],
            "ours_std": [0.1, math.nan, math.nan],
            "seeds": [2, 1, math.nan],
            "paper": [82.0, 75.0, 76.0],
            "paper_std": [0.3, 0.2, 0.1],
        }
    )
    file = known.record(Reproduction("mine", "A paper, Table I", table, ("alpha",), "session", (1, 2)))
    assert file.read_text().splitlines()[0] == "# A paper, Table I"
    result = known.Result("p", "table I", "accuracy", "ran", recorded=("mine",))
    numbers = compared(result)
    assert numbers["setting"].tolist() == ["0.3 session 5"] * 2
    assert numbers["agrees"].tolist() == [True, False]
    assert numbers["seeds"].tolist() == [2, 1]
    assert "1 of 2 numbers are within the band." in known.sentences(result)


def test_a_script_stands_beside_the_papers_numbers(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A number that only the script has is left out; a number that only the paper has is an error."""
    printed = "setting,variant,ours,ours_std,seeds\nb,x,1.1,,1\na,x,3.0,0.5,4\nnew,x,7,,1\n"
    monkeypatch.setattr(
        known.subprocess,
        "run",
        lambda *_, **__: SimpleNamespace(returncode=0, stdout=printed, stderr=""),
    )
    monkeypatch.setattr(known, "PAPERS", tmp_path)
    (tmp_path / "mine.csv").write_text("# Source\nsetting,variant,unit,theirs\na,x,points,4.5\nb,x,ratio,1\n")
    numbers = known.computed("mine")
    assert list(numbers.columns) == COLUMNS
    assert numbers[["setting", "theirs", "ours"]].to_numpy().tolist() == [["a", 4.5, 3.0], ["b", 1, 1.1]]
    (tmp_path / "mine.csv").write_text("setting,variant,unit,theirs\na,y,points,4.5\n")
    with pytest.raises(ValueError, match="lacks a number for a, y"):
        known.computed("mine")


def test_fedls_published_numbers_follow_from_the_closed_form() -> None:
    """The recorded numbers equal the output of the paper's script, which this test runs in its own process."""
    recorded = pd.read_csv(OURS / "fedl.csv", comment="#").set_index(["setting", "variant"])["ours"]
    for setting, quantity, value in fedl_rows():
        assert value == pytest.approx(recorded[setting, quantity], rel=1e-5)


def test_the_command(capsys: pytest.CaptureFixture[str]) -> None:
    for words, code, told in (
        ("", 0, "edgefl papers NAME"),
        ("journal", 0, "table XIV"),
        ("journal vii", 0, "4 of 4 numbers are within the band."),
        ("conference 5", 0, "the same as journal table X"),
        ("journal XX", 2, "table XIV"),
        ("nothing", 2, "flash"),
    ):
        assert main(["papers", *words.split()]) == code
        assert told in capsys.readouterr()[code > 0]


def test_numbers_that_chose_a_setting_are_shown_and_not_counted(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(known, "OURS", tmp_path)
    for name, ours in (("tested", (80.0, 90.0)), ("fitted", (80.0, 80.0))):
        rows = [[name, "x", "points", 80.0, math.nan, value, math.nan, 1] for value in ours]
        pd.DataFrame(rows, columns=COLUMNS).to_csv(tmp_path / f"{name}.csv", index=False)
    results = tuple(
        known.Result("p", name, "accuracy", "ran", recorded=(name,), fitted=name == "fitted")
        for name in ("tested", "fitted")
    )
    page = audit([known.Paper("p", "A paper", "its authors", results)])
    assert "1 of 2 numbers are within the band (50 %)." in page
    assert "2 (fitted, not counted)" in page
    assert page.count("| fitted |") == 2  # both numbers are in the table
    assert "does not count them" in known.sentences(results[1])[-1]


def test_the_audit_page_is_what_its_command_makes() -> None:
    assert (PAPERS.resolve().parents[1] / "docs" / "audit.md").read_text("utf-8") == audit(papers())
