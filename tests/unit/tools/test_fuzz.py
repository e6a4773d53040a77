"""Test that the fuzzer's cases are reproducible, and that it notices each broken rule."""

import resource
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.tools import fuzz
from tests.tools.fuzz_calls import CallResult, call
from tests.tools.fuzz_mutations import FuzzCase


def test_a_call_tells_how_it_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a.yaml").write_text("name: 1\n")
    refused = call(["validate", "a.yaml"], tmp_path, 60)
    assert (refused.code, refused.crash) == (2, "")
    assert refused.err.startswith("edgefl: error: a.yaml:1 name: must be")

    def loop(*_: object, **__: object) -> None:
        while True:
            time.process_time()

    def break_down(*_: object, **__: object) -> None:
        raise KeyError("lost")

    monkeypatch.setattr("edgefl.studies.validation.look", loop)
    assert call(["validate", "a.yaml"], tmp_path, 0.2).crash.startswith("Hang")
    monkeypatch.setattr("edgefl.studies.validation.look", break_down)
    assert call(["validate", "a.yaml"], tmp_path, 60).crash.endswith("KeyError: 'lost'\n")


@pytest.mark.parametrize(
    ("outcome", "rule"),
    [
        (CallResult(0, "", "", "Traceback"), "no traceback"),
        (CallResult(0, "", "", "Hang: "), "no hang"),
        (CallResult(1, "", "oh"), "exit code 0 or 2"),
        (CallResult(2, "", f"edgefl: error: a.yaml:1 a: {'x' * 2000}"), "messages are short"),
        (CallResult(2, "", "edgefl: error: wrong"), "errors name file and line"),
        (CallResult(2, "", ""), "errors are told"),
        (CallResult(0, "", "", "", ("overflow",)), "no numerical warnings"),
    ],
)
def test_each_rule_can_be_broken(
    outcome: CallResult, rule: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fuzz, "call", lambda *_: outcome)
    monkeypatch.setattr(fuzz, "case", lambda *_: FuzzCase({"a.yaml": b"name: x"}))
    broken, _ = fuzz.try_case("validate", 1, 7, tmp_path)
    assert [finding.rule for finding in broken] == [rule]
    assert (tmp_path / "validate-1-7" / "a.yaml").read_bytes() == b"name: x"


def test_what_a_refused_call_leaves_behind_is_noticed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def leave(_: object, folder: Path, __: float) -> CallResult:
        (folder / "out").mkdir()
        return CallResult(2, "", "edgefl: error: a.yaml:1 a: too late")

    monkeypatch.setattr(fuzz, "call", leave)
    for mode, rule in (
        ("validate", "nothing is written"),
        ("run", "a run is refused before it begins"),
    ):
        broken, _ = fuzz.try_case(mode, 1, 0, tmp_path)
        assert [finding.rule for finding in broken] == [rule]


@pytest.fixture
def as_found(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Restore this process afterwards, as the fuzzer limits its address space and turns off downloads."""
    monkeypatch.setenv("EDGEFL_OFFLINE", "1")
    before = resource.getrlimit(resource.RLIMIT_AS)
    yield
    resource.setrlimit(resource.RLIMIT_AS, before)


@pytest.mark.usefixtures("as_found")
def test_fuzzed_files_are_refused_or_run_well(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Fuzzed files are refused or run correctly; `make fuzz` tries a hundred times as many."""
    code = fuzz.main(
        ["--validate", "30", "--map", "25", "--trace", "10", "--run", "4", "--keep", str(tmp_path)]
    )
    said = capsys.readouterr().out
    assert code == 0, said
    assert "completed" in said
