"""Test that README's commands work as printed, except for set-up; test_docs.py tests the pages of docs/."""

import json
import re
import runpy
from io import StringIO
from pathlib import Path

import pandas as pd
import pytest
import yaml
from PIL import Image

from edgefl.analysis import compare
from edgefl.analysis.reports.comparison import FIGURE_NUMBERS
from edgefl.config import registry
from tests.tools.pages import ROOT, blocks_of, checkout, run, there

README = (ROOT / "README.md").read_text()
SETUP = ("make ",)
STUDY = Path("scenarios", "studies", "quickstart.yaml")
PICTURE = Path("docs", "quickstart.png")  # the page docs/studies.md shows it as the result of STUDY
LONGEST = 110  # lines; longer texts belong on a page of docs/


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", README, re.DOTALL)


def chains() -> list[list[str]]:
    """Return chains of commands: a command that reads a run directory follows the command that writes it."""
    found: list[list[str]] = []
    for line in "".join(blocks("sh")).splitlines():
        command = line.partition("#")[0].strip()
        if command.startswith(SETUP) or not command:
            continue
        written = [re.findall(r"--out (\S+)", " ".join(chain)) for chain in found]
        reads = [
            chain for chain, outs in zip(found, written, strict=True) if set(outs) & set(command.split())
        ]
        reads[0].append(command) if reads else found.append([command])
    return found


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A fresh checkout, as a new user gets it."""
    return checkout(tmp_path)


@pytest.mark.always
@pytest.mark.parametrize("chain", chains(), ids=" && ".join)
def test_command(chain: list[str], folder: Path) -> None:
    with there(folder):
        for command in chain:
            run(command, folder)
            if str(STUDY) in command:  # check now: later commands compare the runs at other targets
                check_picture(folder / "runs" / "quickstart")
    abouts = [json.loads(file.read_text()) for file in (folder / "runs").glob("*/run.json")]
    assert not any(about["notes"] for about in abouts)  # a new user's first runs have no notes


def check_picture(study: Path) -> None:
    """Check that picture and caption agree with a run; `make readme` redraws the picture."""
    text = Image.open(ROOT / PICTURE).text[FIGURE_NUMBERS]
    shown, found = pd.read_csv(StringIO(text)), pd.read_csv(study / "comparison.csv")
    # as rounding depends on the processor, accuracies may differ in the third digit; times and energies do not
    pd.testing.assert_frame_equal(shown, found, rtol=0.01, atol=0.005)
    detail = compare(study).detail.set_index(["variant", "session"])
    joules, seconds = detail["joules_to_target"], detail["seconds_to_target"]
    # "half the time", "0.7 times the energy" in the caption
    for cost, about in ((seconds, 0.5), (joules, 0.7)):
        share = (cost["average"] / cost["similarity"]).loc[[4, 5, 6]]
        assert share.loc[[4, 6]].between(about - 0.05, about + 0.05).all()
        assert 0.9 < share.loc[5] < 1.1  # "about as much" in the caption
    assert detail.loc["average", "rounds_to_target"].loc[[4, 5, 6]].tolist() == [1, 2, 1]
    assert detail.loc["similarity", "probe_rounds"].loc[[4, 5, 6]].tolist() == [1, 1, 1]


def test_the_picture_is_that_of_its_study() -> None:
    assert f"({PICTURE.name})" in (ROOT / "docs" / "studies.md").read_text()
    makefile = (ROOT / "Makefile").read_text()
    readme = re.search(r"^readme: .*\n((\t.*\n)+)", makefile, re.MULTILINE)
    assert readme
    assert str(STUDY) in readme[1]
    assert f"comparison.png {PICTURE}" in readme[1]


def test_the_demo_asks_with_three_seeds_and_prints_no_plumbing() -> None:
    recipe = re.search(r"^demo: .*\n((\t.*\n)+)", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert recipe
    lines = recipe[1].splitlines()
    assert all(line.startswith("\t@") for line in lines)
    (study,) = re.findall(r"edgefl study (\S+)", recipe[1])
    assert len(yaml.safe_load((ROOT / study).read_text())["seeds"]) >= 3
    assert all(re.match(r'\t@echo "  \$\(BIN\)/edgefl \w+ ', line) for line in lines[-3:])


def test_no_command_is_forgotten() -> None:
    commands = [line for line in "".join(blocks("sh")).splitlines() if line.strip()]
    assert len([command for command in commands if command.startswith(SETUP)]) == 2
    assert sum(map(len, chains())) == len(commands) - 2
    reading = ("edgefl compare", "edgefl report")
    behind = [chain for chain in chains() if any(command.startswith(reading) for command in chain)]
    assert [len(chain) for chain in behind] == [2, 2], "each follows the commands of its runs"


def test_a_flower_app_needs_ten_lines() -> None:
    """The app on the page has at most ten lines; the page runs it and checks that it learns."""
    page = blocks_of(ROOT / "docs" / "own-learner.md")
    (block,) = [block.text for block in page if block.language == "python" and "flwr" in block.text]
    assert len(block.splitlines()) <= 10


@pytest.mark.always
def test_python(folder: Path) -> None:
    for number, block in enumerate(blocks("python")):
        (folder / f"block_{number}.py").write_text(block)
        with there(folder):
            runpy.run_path(f"block_{number}.py", run_name="__main__")


def test_the_scenario_shown_is_the_one_shipped() -> None:
    shown = yaml.safe_load(blocks("yaml")[0])
    shipped = yaml.safe_load((ROOT / "scenarios" / "quickstart.yaml").read_text())

    def agrees(part: object, whole: object) -> bool:
        if isinstance(part, dict) and isinstance(whole, dict):
            return all(agrees(value, whole[key]) for key, value in part.items())
        return part == whole

    assert agrees(shown, shipped)


def test_files_and_links_named_exist() -> None:
    for link in re.findall(r"\]\(([^)]+)\)", README):
        assert (ROOT / link.partition("#")[0]).exists(), link
    for name in re.findall(r"`([\w*]+\.yaml)`", README):
        assert name == "scenario.yaml" or list((ROOT / "scenarios").glob(name)), name


def test_it_is_read_in_one_go() -> None:
    assert len(README.splitlines()) <= LONGEST


def test_what_is_counted_is_there() -> None:
    own_files = {"csv", "npz", "image_folder", "huggingface"}  # not counted: these read the user's data
    counts = re.search(r"(\d+) algorithms, (\d+) warm starts, (\d+) data sets", README)
    there = [registry.names(kind) for kind in ("algorithms", "warm_starts", "datasets")]
    there[2] = [name for name in there[2] if name not in own_files]
    assert counts
    assert [int(count) for count in counts.groups()] == [len(names) for names in there]
    assert f"any of {len(registry.KINDS)} kinds" in README


def test_results_are_those_of_their_pages() -> None:
    """Each number in the table of results also appears on the page that its row links to."""
    table = README.partition("## Five results")[2].partition("##")[0]
    rows = [line.split("|")[1:-1] for line in table.splitlines() if "](docs/" in line]
    assert len(rows) == 5
    for _, answer, link in rows:
        page = re.search(r"\((docs/[a-z-]+\.md)", link)
        assert page
        text = (ROOT / page[1]).read_text()
        numbers = re.findall(r"\d[\d,.]*\d|\d", answer.replace("`", ""))
        assert numbers
        assert [
            number for number in numbers if not re.search(rf"(?<![\d.,]){re.escape(number)}(?![\d])", text)
        ] == []
