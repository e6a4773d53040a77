"""Test comparisons of the papers' tables with runs, on run directories written by hand."""

import math
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from edgefl.analysis.commands.line import main
from edgefl.analysis.reports.reproduction import FITTED, PAPERS, Reproduction, page, papers_table, reproduce

ROUNDED = 0.01 + 1e-9  # rounding error of the mean, which has two decimals, and of its terms
STUDY = "journal_table_x_fashion_mnist_as_run"
# J, Table X, FMNIST, overlap 0.0, alpha 0.3, FedProx: accuracies in % of sessions 5 and 7
PAPER = {
    "similarity": (83.19, 84.22),
    "continuous": (59.36, 64.58),
    "previous": (77.74, 79.90),
    "average": (78.57, 80.52),
}
Writer = Callable[..., Path]


def write(
    write_run: Writer, variant: str, five: float, seven: float, algorithm: str = "fedprox", **run: object
) -> Path:
    """Write a run with these accuracies in percent in the first ten rounds of sessions 5 and 7, and 0 afterwards."""
    rounds = [
        {"session": session, "round": t, "accuracy": level / 100 if t <= 10 else 0.0}
        for session, level in ((5, five), (6, 10.0), (7, seven))
        for t in range(1, 13)
    ]
    about = {
        "study": STUDY,
        "setting": {"overlap": "0.0", "alpha": "0.3", "algorithm": algorithm},
        "variant": variant,
        "seed": 100,
    }
    name = f"{algorithm}/{variant}/seed-{run.get('seed', 100)}"
    return write_run(name, rounds, [{"session": s} for s in (5, 6, 7)], **{**about, **run})


def study(write_run: Writer, tmp_path: Path, **by: float) -> Path:
    """Write runs of all variants, this many points above the paper's numbers."""
    for variant, (five, seven) in PAPER.items():
        write(write_run, variant, five + by.get(variant, 0.0), seven + by.get(variant, 0.0))
    return tmp_path / "runs"


def test_ours_stand_beside_the_papers_numbers(write_run: Writer, tmp_path: Path) -> None:
    one = reproduce(study(write_run, tmp_path, similarity=1.0, average=-2.0))
    rows = {(row.variant, row.session): row for row in one.present.itertuples()}
    assert len(rows) == 8
    assert len(one.table) == 128  # 2 overlaps x 2 alphas x 4 algorithms x 4 variants x 2 sessions
    for variant, both in PAPER.items():
        for session, paper in zip((5, 7), both, strict=True):
            assert rows[variant, session].paper == paper
    assert rows["similarity", 7].ours == pytest.approx(85.22)
    assert rows["average", 5].difference == pytest.approx(-2.0)
    assert one.distance() == pytest.approx((1 + 1 + 2 + 2) / 8)


def test_orders_and_pairs(write_run: Writer, tmp_path: Path) -> None:
    """If `average` is behind `previous` in both sessions, one of six pairs is ordered differently in each session."""
    one = reproduce(study(write_run, tmp_path, average=-2.0))
    orders = one.orders()
    assert orders["same"].tolist() == [False, False]
    assert orders.loc[0, "paper"] == "similarity > average > previous > continuous"
    assert orders.loc[0, "ours"] == "similarity > previous > average > continuous"
    assert one.pairs() == (10, 12)
    text = page([one])
    assert "10 of 12 pairs of variants are in the paper's order" in text
    assert "At overlap 0.0, alpha 0.3, algorithm fedprox, session 5, our order is" in text
    assert "| 0.0 0.3 fedprox 5 | 83.19 / 83.19 | 59.36 / 59.36 | 77.74 / 77.74 | 76.57 / 78.57 |" in text


def test_algorithms_are_told_apart(write_run: Writer, tmp_path: Path) -> None:
    """The page states a distance per algorithm, 1 for FedProx and 4 for SCAFFOLD, not the mean over both."""
    study(write_run, tmp_path, similarity=1.0, continuous=1.0, previous=-1.0, average=-1.0)
    # J, Table X, FMNIST, 0.0, 0.3, SCAFFOLD: 47.74 and 53.64, 77.80 and 79.88
    write(write_run, "previous", 47.74 + 4, 53.64 + 4, algorithm="scaffold")
    write(write_run, "similarity", 77.80 + 4, 79.88 + 4, algorithm="scaffold")
    one = reproduce(tmp_path / "runs")
    fedprox, scaffold = one.by_algorithm()
    assert (len(fedprox.present), len(scaffold.present)) == (8, 4)
    assert (fedprox.distance(), scaffold.distance()) == pytest.approx((1.0, 4.0))
    text = page([one])
    assert "(and mean absolute difference) by algorithm: fedprox +0.00 (1.00); scaffold +4.00 (4.00)." in text
    # differences: with FedProx, +1 for similarity and continuous, -1 for previous and average; with SCAFFOLD, +4
    by_variant = (
        "similarity +2.50 (2.50); continuous +1.00 (1.00); previous +1.50 (2.50); average -1.00 (1.00)."
    )
    assert f"(and mean absolute difference) by variant: {by_variant}" in text
    assert f"| `{STUDY}` | scaffold | 4 of 32 | seed 100 | 4.00 |  | 2 of 2 |" in text


def test_a_fitted_study_says_so_where_its_distance_stands(write_run: Writer, tmp_path: Path) -> None:
    """For a study with fitted settings, the page says so next to the study's distance."""
    write(write_run, "similarity", 92.08, 92.86, study="journal_table_x_mnist_as_run")
    text = page([reproduce(tmp_path / "runs")])
    assert "| `journal_table_x_mnist_as_run` (rate fitted to the paper) | fedprox | 2 of 32 |" in text
    assert all(
        (PAPERS.resolve().parents[1] / "scenarios/studies" / f"{study}.yaml").is_file() for study in FITTED
    )


def test_folders_of_one_study_share_a_section(write_run: Writer, tmp_path: Path) -> None:
    one = reproduce(study(write_run, tmp_path, similarity=1.0))
    text = page([one, one])
    assert text.count(f"## {STUDY}") == 1
    assert text.count("| 0.0 0.3 fedprox 5 |") == 2


def test_seeds_are_averaged_and_a_missing_variant_is_no_order(write_run: Writer, tmp_path: Path) -> None:
    write(write_run, "similarity", 80.0, 81.0)
    write(write_run, "similarity", 84.0, 83.0, seed=200)
    one = reproduce(tmp_path / "runs")
    assert one.present["ours"].tolist() == pytest.approx([82.0, 82.0])
    assert one.present["ours_std"].tolist() == pytest.approx([8**0.5, 2**0.5])
    assert one.seeds == (100, 200)
    assert one.orders().empty
    assert "These runs give 2 of the table's 128 numbers" in page([one])
    write(write_run, "similarity", 70.0, 71.0, algorithm="moon", seed=200)
    rows = reproduce(tmp_path / "runs").present
    assert dict(zip(rows["algorithm"], rows["seeds"], strict=True)) == {"fedprox": 2, "moon": 1}


def test_a_studys_table_is_found_by_its_name() -> None:
    text, _ = papers_table("journal_table_x_mnist")
    as_run, _ = papers_table("journal_table_x_mnist_as_run")
    assert text.equals(as_run)
    assert len(text) == 128
    assert list(text.columns) == ["overlap", "alpha", "algorithm", "variant", "session", "mean", "std"]
    assert len(papers_table("journal_table_ii_as_run")[0]) == 128
    assert set(papers_table("journal_table_vi_ag_news_as_run")[0].columns) >= {"variant", "session"}
    with pytest.raises(ValueError, match="no table of a paper matches the study 'quickstart'"):
        papers_table("quickstart")


def test_a_rounds_costs_are_compared_by_their_names(write_run: Writer) -> None:
    """A round's latency and energy are compared by name with Table VII: 6.89 s and 77.7 J for SVHN."""
    rounds = [
        {"session": 1, "round": t, "latency_mean_s": 7.0 + t, "energy_j": 70.0, "latency_s": 20.0}
        for t in (1, 2)
    ]
    folder = write_run("journal_table_vii_svhn", rounds, [{"session": 1}])
    one = reproduce(folder)
    assert one.table["ours"].tolist() == pytest.approx([8.5, 70.0])
    assert one.table["paper"].tolist() == [6.89, 77.7]
    assert "| latency_mean_s | 8.50 / 6.89 |" in page([one])


def test_runs_of_other_variants_or_studies_are_refused(write_run: Writer, tmp_path: Path) -> None:
    write(write_run, "mine", 80.0, 81.0)
    with pytest.raises(ValueError, match="no run for any row"):
        reproduce(tmp_path / "runs")
    write(write_run, "similarity", 80.0, 81.0, study="journal_table_x_mnist")
    with pytest.raises(ValueError, match="give the folder of one study"):
        reproduce(tmp_path / "runs")


def test_the_command_writes_the_page(write_run: Writer, tmp_path: Path) -> None:
    out = tmp_path / "reproduction.md"
    folder = str(study(write_run, tmp_path))
    assert main(["papers", "--runs", folder, "--out", str(out)]) == 0
    text = out.read_text()
    assert text.startswith((PAPERS / "preface.md").read_text().rstrip())
    assert f"| `{STUDY}` | fedprox | 8 of 32 | seed 100 | 0.00 | 2 of 2 | 12 of 12 |" in text
    assert main(["papers", "--runs", str(tmp_path / "nothing")]) == 2
    (tmp_path / "mine.yaml").write_text("name: mine\n")
    assert main(["papers", "--runs", folder, "--out", str(tmp_path / "mine.yaml")]) == 2
    assert (tmp_path / "mine.yaml").read_text() == "name: mine\n"


def read_again(text: str) -> list[Reproduction]:
    """Read the numbers of our runs back from the tables of the shipped page."""
    found = []
    for section in text.split("\n## ")[1:]:
        study = section.partition("\n")[0]
        if not study.startswith("journal_table_"):
            continue  # sections before the studies
        paper, source = papers_table(study)
        by = "metric" if "metric" in paper else "session"
        axes = tuple(column for column in paper if column not in ("variant", by, "mean", "std"))
        paper["row"] = [" ".join(map(str, key)) for key in paper[[*axes, by]].itertuples(index=False)]
        head = f"| {', '.join([*axes, by])} | "
        for block in re.findall(rf"^{re.escape(head)}.*\n(?:\|.*\n)+", section, re.MULTILINE):
            lines = [[cell.strip() for cell in line.strip("| ").split("|")] for line in block.splitlines()]
            variants, rows = lines[0][1:], lines[2:]
            ours = {
                (row[0], variant): float(cell.split("/")[0])
                for row in rows
                for variant, cell in zip(variants, row[1:], strict=True)
                if cell
            }
            table = paper.rename(columns={"mean": "paper", "std": "paper_std"})
            table["ours"] = [
                ours.get(key, math.nan) for key in zip(table["row"], table["variant"], strict=True)
            ]
            assert table["ours"].notna().sum() == len(ours)
            table["ours_std"], table["difference"] = math.nan, table["ours"] - table["paper"]
            above = section[: section.index(block)]
            seeds = re.findall(r"\((?:seed (\d+)|(\d+) seeds)", above)
            one, many = seeds[-1] if seeds else ("100", "")
            found.append(
                Reproduction(study, source, table, axes, by, (int(one),) if one else tuple(range(int(many))))
            )
    return found


def test_the_shipped_page_is_what_its_command_makes() -> None:
    """The page equals a page that is made from its own tables, up to rounding, so nothing was edited by hand."""
    shipped = (PAPERS.resolve().parents[1] / "docs" / "reproduction.md").read_text(encoding="utf-8")
    again = page(read_again(shipped))
    number = re.compile(r"(?<![\w.])[-+]?\d+\.\d+")
    assert number.sub("#", shipped) == number.sub("#", again)
    pairs = zip(number.findall(shipped), number.findall(again), strict=True)
    assert all(abs(float(one) - float(other)) <= ROUNDED for one, other in pairs)


def test_every_number_of_the_papers_has_its_place() -> None:
    """No row repeats, accuracies are in percent; Table X ends with MOON on CIFAR-100 at overlap 0.2, alpha 0.7."""
    counts = {}
    for file in sorted(PAPERS.glob("*.csv")):
        table, source = papers_table(file.stem)
        assert source, "it names the paper and the table"
        assert not table.drop(columns=["mean", "std"], errors="ignore").duplicated().any(), file
        if "session" in table:
            assert table["mean"].between(10, 100).all(), file
            counts[file.stem.removeprefix("journal_table_")] = len(table)
    others = {"conference_table_3": 384, "conference_table_12": 3, "early_table_1": 48}
    # tables XI and XII have the rows of MNIST and Fashion-MNIST, and no row repeats another row
    journal = {"ii": 128, "iii": 96, "iv": 32, "v": 24, "vi": 24, "x": 612, "xi": 135, "xii": 144, "xiv": 54}
    assert counts == journal | others
