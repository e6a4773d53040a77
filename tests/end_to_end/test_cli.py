"""Test the command line's messages and exit codes in this process, and whole studies in slow tests."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pandas as pd
import pytest

from edgefl import load_scenario
from edgefl.commands.cli import main
from tests.tools.called import code_of


class Done(NamedTuple):
    """The exit code and output of a command."""

    returncode: int
    stdout: str
    stderr: str


Edgefl = Callable[..., Done]


@pytest.fixture
def edgefl(capsys: pytest.CaptureFixture[str]) -> Edgefl:
    """The `edgefl` command, called in this process."""

    def call(*arguments: object) -> Done:
        capsys.readouterr()
        return Done(code_of(*arguments), *capsys.readouterr())

    return call


def test_default_directories_are_never_reused(
    edgefl: Edgefl, digits: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("digits-seed3", "digits-seed3-2"):
        assert edgefl("run", digits, "--set", "sessions.count=1").returncode == 0
        assert (tmp_path / "runs" / name / "run.json").exists()


@pytest.mark.usefixtures("unrendered")
def test_a_study_with_a_grid_compares_its_variants_in_every_setting(
    edgefl: Edgefl, digits: Path, tmp_path: Path
) -> None:
    study = digits.with_name("small.yaml")
    study.write_text(
        study.read_text()
        + "grid:\n"
        + "  learning.partition.alpha: [0.3, 100]\n"
        + "  pace: {slow: {learning.local.lr: 0.001, learning.local.steps: 2}, fast: {learning.local.lr: 0.1}}\n"
    )
    out = tmp_path / "study"
    done = edgefl("study", study, "--out", out, "--jobs", 2, "--seed", 5)
    assert done.returncode == 0, done.stderr
    folders = {f"alpha-{alpha}_pace-{pace}" for alpha in ("0.3", "100") for pace in ("slow", "fast")}
    assert {path.name for path in out.iterdir() if path.is_dir()} == folders
    runs = sorted(out.rglob("run.json"))
    assert len(runs) == 4 * 2, "--seeds replaces the study's seeds"
    for path in runs:
        about = json.loads(path.read_text())
        own = load_scenario(path.with_name("scenario.yaml")).learning
        setting = {"alpha": f"{own.partition.alpha:g}", "pace": {2: "slow", 5: "fast"}[own.local.steps]}
        assert (about["setting"], about["seed"]) == (setting, 5)
        assert own.local.lr == {"slow": 0.001, "fast": 0.1}[setting["pace"]]
    table = pd.read_csv(out / "settings.csv", dtype={"alpha": str})
    assert set(zip(table.alpha, table.pace, strict=True)) == {
        (alpha, pace) for alpha in ("0.3", "100") for pace in ("slow", "fast")
    }
    fast = table.query("pace == 'fast'").similarity_mean.to_numpy()
    assert (fast > table.query("pace == 'slow'").similarity_mean.to_numpy()).all()
    assert "similarity is ahead of all others in" in done.stdout
    assert (out / "settings.png").exists()


def test_validate(edgefl: Edgefl, digits: Path) -> None:
    assert edgefl("validate", digits, digits.with_name("small.yaml")).returncode == 0
    digits.write_text(digits.read_text().replace("count: 8", "count: -8"))
    done = edgefl("validate", digits, digits.with_name("small.yaml"))
    assert done.returncode == 2
    # the missing data set is reported once for the scenario and once for the study that uses it
    assert done.stderr.count("digits.yaml:3 devices.count: must be >= 1, got -8") == 2


def test_what_validate_says_stands_in_the_order_of_the_files(
    edgefl: Edgefl, digits: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stderr", sys.stdout)
    said = edgefl("validate", "none.yaml", digits, "nothing.yaml").stdout
    assert re.findall(r"(\w+\.yaml): (?:ok|cannot)", said) == ["none.yaml", digits.name, "nothing.yaml"]


def data_set(file: Path) -> str:
    """Return the data set named by a scenario file, or by the scenario of a study file."""
    text = file.read_text()
    if scenario := re.search(r"^scenario: (\S+)", text, re.MULTILINE):
        return data_set(file.parent / scenario[1])
    return "".join(re.findall(r"dataset: .*", text))


def test_every_shipped_scenario_is_valid(edgefl: Edgefl) -> None:
    files = sorted((Path(__file__).parents[2] / "scenarios").rglob("*.yaml"))
    # sorted by data set, so that each data set is read once; without "million", which takes a minute and 1.5 GB
    shipped = sorted((file for file in files if file.stem != "million"), key=data_set)
    assert len(shipped) >= 25
    done = edgefl("validate", *shipped)
    # the only errors allowed are missing data sets that no Debian or PyPI package has, and Shakespeare's plays
    named = re.findall(r"(\w+)\.yaml:\d", done.stderr)
    missing = re.findall(r"(\w+)\.yaml:\d+ learning\.dataset: no complete", done.stderr)
    assert named == missing, done.stderr
    assert all(
        re.match("flash_|journal_|conference_|early_|fedl_mnist|mcmahan_mnist|shakespeare", name)
        for name in missing
    )
    here = {"flash_synthetic", "flash_fashion_mnist", "journal_fashion_mnist"}
    assert not here & set(missing)
    assert done.returncode == (2 if missing else 0)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["run", "none.yaml"], "none.yaml: cannot be read"),
        (["run", "digits.yaml", "--device", "tpu"], "--device tpu: choose auto, cpu, cuda, cuda:N or mps"),
        (["run", "digits.yaml", "--out", "/proc/none"], "/proc/none: cannot be written"),
        (["run", "digits.yaml", "--out", "."], "is not empty; choose another --out"),
        (["run", "digits.yaml", "--set", "learning.model=logistics"], "did you mean 'logistic'"),
        (
            ["study", "digits.yaml"],
            "digits.yaml: is a scenario, not a study; `edgefl run digits.yaml` runs it",
        ),
        (["study", "small.yaml", "--seed", "-1"], "--seed -1 seeds.0: must be >= 0"),
        (
            ["run", "digits.yaml", "--set", "seed=3", "--seed", "4"],
            "--seed 4 would replace --set seed=3: leave one",
        ),
        (
            ["validate", "digits.yaml", "--set", "seed=3", "--set", "seed=4"],
            "--set seed=4 would replace --set seed=3",
        ),
        (["study", "small.yaml", "--set", "seed=3"], "--set seed=3: the seeds of a study are in `seeds`"),
        (["describe", "something"], "write KIND/NAME"),
        (["describe", "watch"], "see edgefl watch --help"),
        (["describe", "algorithms/fedavgg"], "did you mean 'fedavg'"),
        (["list", "algorithm"], "did you mean 'algorithms'"),
        (["run"], "Missing argument"),
    ],
)
def test_bad_input_ends_with_2_and_one_message(
    edgefl: Edgefl,
    arguments: list[str],
    message: str,
    digits: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    done = edgefl(*arguments)
    assert done.returncode == 2
    assert message in done.stderr
    assert "Traceback" not in done.stderr
    assert sorted(p.name for p in tmp_path.iterdir()) == ["digits.yaml", "small.yaml"], "nothing is left"


def test_names_and_version(edgefl: Edgefl) -> None:
    assert {"average", "previous", "similarity"} <= set(edgefl("list", "warm_starts").stdout.split())
    assert edgefl("--version").stdout.startswith("edgefl ")
    assert "edgefl study" in edgefl("study", "--help").stdout
    assert "7,850" in edgefl("describe", "models/logistic").stdout


def test_validate_takes_overrides_as_run_does(edgefl: Edgefl, digits: Path) -> None:
    assert edgefl("validate", digits, "--set", "devices.count=3").stdout.count(" 3 devices") == 1
    done = edgefl("validate", digits, "--set", "devices.count=none")
    assert done.returncode == 2
    assert done.stderr.startswith("edgefl: error: --set devices.count=none devices.count: must be")
    study = digits.with_name("study.yaml")
    study.write_text(f"name: s\nscenario: {digits.name}\nseeds: [1]\nvariants: {{a: {{}}}}\n")
    assert "is a study; --set works only for scenarios" in edgefl("validate", study, "--set", "seed=1").stderr


def test_a_folder_that_was_deleted_is_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    with pytest.raises(SystemExit) as ended:
        main(["list"])
    assert ended.value.code == 2
    assert capsys.readouterr().err.startswith("edgefl: error: the current folder cannot be found")


@pytest.mark.parametrize("out", [["--out", "~/x"], ["--out=~/x"]])
def test_a_tilde_that_the_shell_leaves_is_the_home_folder(
    out: list[str], digits: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    for words in (["run", str(digits), "--set", "sessions.count=1", *out], ["watch", "~/x", "--once"]):
        with pytest.raises(SystemExit) as ended:
            main(words)
        assert not ended.value.code
    assert (tmp_path / "home" / "x" / "run.json").exists()
    assert not (tmp_path / "~").exists()


def test_without_a_home_a_figure_needs_no_notice(tmp_path: Path) -> None:
    """Matplotlib's warning about its font cache does not appear."""
    file = tmp_path / "home"
    file.touch()
    code = (
        "from edgefl.analysis.commands.line import keep_matplotlib_quiet as quiet; quiet();"
        " import matplotlib; print(matplotlib.get_cachedir())"
    )
    environment = {key: value for key, value in os.environ.items() if key != "MPLCONFIGDIR"}
    environment |= {"HOME": str(file), "XDG_CONFIG_HOME": "", "XDG_CACHE_HOME": ""}
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True
    )
    assert done.stderr == ""
