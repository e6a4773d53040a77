"""Test that studies exported to other tools have the values of the run directories when read back."""

import shlex
import sqlite3
import struct
import sys
from collections.abc import Callable, Iterator
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from edgefl.analysis import compare
from edgefl.analysis.export import export, to_mlflow
from edgefl.analysis.export.records import study_of

SCENARIO = "name: demo\nlearning:\n  local: {lr: 0.05}\n  algorithm: {name: fedprox, mu: 1.0}\n"
RUNS = 4


@pytest.fixture
def runs(write_study: Callable[..., Path]) -> Path:
    """Write the runs of two variants and two seeds with 14 rounds each; one run is incomplete."""
    path = write_study(variants=("similarity", "average"), seeds=(1, 2), sessions=4, rounds=3)
    for run in path.glob("*/*"):
        (run / "scenario.yaml").write_text(SCENARIO)
    return path


@pytest.fixture
def study(runs: Path) -> Path:
    """Compare the runs, and return their folder."""
    compare(runs)
    return runs


def test_what_is_exported(study: Path) -> None:
    found = study_of(study)
    assert found.name == "demo"
    assert [run.name for run in found.runs] == [
        f"{variant} seed {seed}" for variant in ("average", "similarity") for seed in (1, 2)
    ]
    assert {"comparison.csv", "comparison.png"} <= {file.name for file in found.files}
    run = found.runs[0]
    assert run.settings["learning.algorithm.mu"] == 1.0
    ends = [end_s for end_s, _ in run.rounds]
    assert ends == sorted(ends)
    assert run.rounds[-1][1]["spent_j"] == pytest.approx(run.summary["total.energy_j"])
    names = {name.split(".")[0]: set[str]() for name in run.summary}
    for name in run.summary:
        names[name.split(".")[0]].add(name.split(".")[1])
    assert names["total"] == {"energy_j", "simulated_s", "rounds", "probe_rounds"}
    assert {"latency_s", "round_energy_j"} <= names["mean"], "means over rounds are no totals"
    probed = found.runs[2]
    assert sum("accuracy" not in values for _, values in probed.rounds) == 3, "probe rounds have no accuracy"


def test_cells_have_curves_of_their_own(write_run: Callable[..., Path]) -> None:
    rounds = [{"session": 1, "round": 1, "cell": cell, "accuracy": 0.1 * cell} for cell in (1, 2)]
    path = write_run("two", rounds, [{"session": 1, "cell": 1}, {"session": 1, "cell": 2}])
    (run,) = study_of(path).runs
    assert [values.get("accuracy.cell_2") for _, values in run.rounds] == [None, 0.2]
    assert study_of(path).files == []


def test_federations_have_tables_of_their_own(write_run: Callable[..., Path], tmp_path: Path) -> None:
    """A study's comparisons of each federation are in a folder with the federation's name."""
    for variant in ("a", "b"):
        for name in ("x", "y"):
            rounds, sessions = [{"session": 1, "round": 1, "accuracy": 0.5}], [{"session": 1}]
            path = write_run(
                f"{variant}/seed-1/{name}", rounds, sessions, variant=variant, seed=1, federation=name
            )
            (path / "scenario.yaml").write_text(SCENARIO)
        (path.parent / "run.json").write_bytes((path / "run.json").read_bytes())
    home = tmp_path / "runs"
    names = {"x/comparison.csv", "y/comparison.csv"}
    for name in names:
        (home / name).parent.mkdir()
        (home / name).write_text("mean\n1\n")
    found = study_of(home)
    assert len({run.key for run in found.runs}) == RUNS
    assert {found.name_of(file) for file in found.files} == names
    mlflow = installed("mlflow")
    export(home, "mlflow")
    client = mlflow.MlflowClient(tracking_uri=f"sqlite:///{home}/mlflow.db")
    experiment = client.get_experiment_by_name(found.name).experiment_id
    (parent,) = (
        run.info.run_id
        for run in client.search_runs([experiment])
        if run.info.run_name == f"study {found.name}"
    )
    assert {file.path for each in "xy" for file in client.list_artifacts(parent, each)} == names


def test_an_unknown_tool_or_a_missing_package_is_said(runs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ValueError, match="no export to 'excel': choose mlflow, wandb or tensorboard"):
        export(runs, "excel")
    monkeypatch.setitem(sys.modules, "mlflow", None)
    with pytest.raises(ValueError, match=r"pip install 'edgefl-cosim\[mlflow\]'"):
        export(runs, "mlflow")


def installed(name: str) -> Any:
    """Import a package of an extra, or skip if it is not installed; fail if it is installed but not importable."""
    if find_spec(name) is None:
        pytest.skip(f"in the {name} extra")
    return import_module(name)


@pytest.mark.usefixtures("rendered")
@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"some notes\n" * 90, r"cannot be read as an MLflow store \(file is not a database\)"),
        (None, "is a database, but not an MLflow store"),
    ],
)
def test_a_file_that_is_no_store_is_refused_and_kept(
    study: Path, tmp_path: Path, content: bytes | None, why: str
) -> None:
    installed("mlflow")
    file = tmp_path / "mlflow.db"
    if content is None:
        with sqlite3.connect(file) as database:
            database.execute("CREATE TABLE notes (text)")
        database.close()
    else:
        file.write_bytes(content)
    before = file.read_bytes()
    with pytest.raises(ValueError, match=rf"mlflow\.db: {why}: move the file away, or choose another --out"):
        export(study, "mlflow", tmp_path)
    assert file.read_bytes() == before


def test_mlflow_has_it_all_once_and_again_what_was_cut_short(study: Path, tmp_path: Path) -> None:
    mlflow = installed("mlflow")
    out = tmp_path / "out"
    found = export(study, "mlflow", out)
    assert (found.new, found.there) == (RUNS, 0)
    again = export(study, "mlflow", out)
    assert (again.new, again.there) == (0, RUNS)
    client = mlflow.MlflowClient(tracking_uri=f"sqlite:///{out}/mlflow.db")
    experiment = client.get_experiment_by_name("demo").experiment_id
    there: dict[str, Any] = {run.info.run_name: run for run in client.search_runs([experiment])}
    assert len(there) == RUNS + 1
    for record in study_of(study).runs:
        run = there[record.name]
        assert run.data.params["learning.local.lr"] == "0.05"
        assert run.data.tags["edgefl.variant"] == record.about["variant"]
        assert run.data.metrics["total.energy_j"] == pytest.approx(record.summary["total.energy_j"])
        assert {name: run.data.metrics[name] for name in record.summary} == pytest.approx(record.summary)
        history = client.get_metric_history(run.info.run_id, "spent_j")
        assert [(m.step, m.timestamp) for m in history] == [
            (step, round(1000 * end_s)) for step, (end_s, _) in enumerate(record.rounds)
        ]
        assert [file.path for file in client.list_artifacts(run.info.run_id)] == ["scenario.yaml"]
    parent = there["study demo"].info.run_id
    assert all(
        run.data.tags["mlflow.parentRunId"] == parent for name, run in there.items() if name != "study demo"
    )
    files = {file.path for file in client.list_artifacts(parent)}
    assert files == {file.name for file in study_of(study).files}
    client.update_run(there["average seed 2"].info.run_id, status="RUNNING")
    assert export(study, "mlflow", out).new == 1
    assert len(client.search_runs([experiment])) == RUNS + 1


@pytest.mark.usefixtures("rendered")
def test_wandb_has_it_all_once_and_offline(study: Path, tmp_path: Path) -> None:
    installed("wandb")
    found = export(study, "wandb", tmp_path)
    assert (found.new, found.there) == (RUNS, 0)
    assert (export(study, "wandb", tmp_path).new, len(list(tmp_path.glob("wandb/offline-run-*")))) == (
        0,
        RUNS + 1,
    )
    logged = {
        name: (config, history) for name, config, history in map(read, tmp_path.glob("wandb/*/*.wandb"))
    }
    for record in study_of(study).runs:
        config, history = logged[record.name]
        assert config["learning.local.lr"] == "0.05"
        assert len(history) == len(record.rounds)
        assert float(history[-1]["spent_j"]) == pytest.approx(record.summary["total.energy_j"])
    _, tables = logged["study demo"]
    assert "comparison.csv/_type" in {key for row in tables for key in row}
    assert list(tmp_path.glob("wandb/*/files/comparison.tex"))


@pytest.mark.usefixtures("rendered")
@pytest.mark.parametrize(
    ("tool", "last"),
    [
        ("tensorboard", "{out}/tensorboard"),
        ("mlflow", "sqlite:///{out}/mlflow.db"),
        ("wandb", "{out}/wandb/offline-run-*"),
    ],
)
def test_the_command_to_look_can_be_pasted_for_any_folder(
    study: Path, tmp_path: Path, tool: str, last: str
) -> None:
    """The shell reads the folder as one word, even with blanks and quotes in its name."""
    if tool != "tensorboard":
        installed(tool)
    out = tmp_path / "it's an export"
    assert shlex.split(export(study, tool, out).look)[-1] == last.format(out=out)


@pytest.mark.usefixtures("rendered")
@pytest.mark.parametrize(("flask", "first"), [(None, "pip install mlflow && mlflow ui "), (1, "mlflow ui ")])
def test_the_page_of_mlflow_needs_more_than_the_extra(
    study: Path, tmp_path: Path, flask: object, first: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The extra installs mlflow-skinny, whose `mlflow ui` fails without Flask."""
    installed("mlflow")
    monkeypatch.setattr(to_mlflow, "find_spec", lambda name: flask)
    assert export(study, "mlflow", tmp_path).look.startswith(first)


def read(path: Path) -> tuple[str, dict[str, str], list[dict[str, str]]]:
    """Read an offline run: its name, settings and logged values, as JSON text."""
    from wandb.proto import wandb_internal_pb2

    name, config, history = "", {}, []
    for data in pieces(path.read_bytes()):
        record = wandb_internal_pb2.Record()
        record.ParseFromString(data)
        if record.HasField("run"):
            name = record.run.display_name
            config |= {i.key: i.value_json for i in record.run.config.update}
        if record.HasField("history"):
            history.append({"/".join(i.nested_key) or i.key: i.value_json for i in record.history.item})
    return name, config, history


def pieces(log: bytes) -> Iterator[bytes]:
    """Split a LevelDB log of 32 KiB blocks into pieces with checksum (4 bytes), length (2) and kind (1)."""
    block, place, data = 32768, 7, b""
    while place + 7 < len(log):
        if block - place % block < 7:
            place += block - place % block
            continue
        length, kind = int.from_bytes(log[place + 4 : place + 6], "little"), log[place + 6]
        data += log[place + 7 : place + 7 + length]
        place += 7 + length
        if kind in (1, 4):  # a whole record, or its last part
            yield data
            data = b""


def unmasked(checksum: bytes) -> int:
    """Undo TFRecord's mask, which rotates the checksum right by 15 bits and adds a constant."""
    rotated = (struct.unpack("<I", checksum)[0] - 0xA282EAD8) % 2**32
    return (rotated << 15) % 2**32 + (rotated >> 17)


def test_tensorboard_has_the_rounds_and_totals(runs: Path) -> None:
    """The event file has checksums as its format describes them, and the values of rounds and totals."""
    from edgefl.analysis.export import to_tensorboard

    assert to_tensorboard.crc32c(b"123456789") == 0xE3069283, "the check value of CRC-32C, RFC 3720"
    assert to_tensorboard.crc32c(bytes(32)) == 0x8A9136AA, "32 bytes of zeros, RFC 3720, B.4"
    written = export(runs, "tensorboard")
    assert (written.new, written.there) == (RUNS, 0)
    assert (export(runs, "tensorboard").new, export(runs, "tensorboard").there) == (0, RUNS)
    record = study_of(runs).runs[0]
    data = (written.place / record.key / to_tensorboard.FILE).read_bytes()
    found = []
    while data:
        (length,) = struct.unpack("<Q", data[:8])
        assert unmasked(data[8:12]) == to_tensorboard.crc32c(data[:8])
        assert unmasked(data[12 + length : 16 + length]) == to_tensorboard.crc32c(data[12 : 12 + length])
        found.append(data[12 : 12 + length])
        data = data[16 + length :]
    assert found[0].endswith(b"brain.Event:2")
    assert len(found) == 1 + len(record.rounds) + 1
    for step, (event, (end_s, values)) in enumerate(zip(found[1:], record.rounds, strict=False)):
        assert struct.unpack("<d", event[1:9])[0] == end_s
        assert event[9:11] == bytes([0x10, step])
        for name, value in values.items():
            place = event.index(bytes([0x0A, len(name)]) + name.encode() + bytes([0x15])) + len(name) + 3
            assert struct.unpack("<f", event[place : place + 4])[0] == pytest.approx(value, rel=1e-6)
