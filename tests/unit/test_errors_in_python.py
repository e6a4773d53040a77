"""Test that errors in Python name arguments where errors on the command line name options."""

import ast
import inspect
import re
from collections.abc import Callable
from pathlib import Path

import pytest

import edgefl
from edgefl import analysis
from edgefl.analysis.page.arguments import naming_arguments
from edgefl.analysis.runs.load import load_runs as load_as_read
from edgefl.errors import OPTION, EdgeflError, in_python

ROOT = Path(__file__).parents[2]
SMALL = {
    "name": "small",
    "devices": {"count": 3},
    "sessions": {"name": "schedule", "count": 1, "rounds": 1},
    "workload": {"payload_bits": 1000, "flops_per_sample": 1000},
}


@in_python
def refuse(message: str, out: str | None = None, *, retry: bool = False, keys: tuple[str, ...] = ()) -> None:
    raise ValueError(message)


@pytest.mark.parametrize(
    ("said", "heard"),
    [
        ("choose another --out, or delete it", "choose another out=, or delete it"),
        ("--out x.bmp: no picture", "out=x.bmp: no picture"),
        ("--retry repeats it", "retry=True repeats it"),
        ("choose one with --key", "choose one with keys="),
        ("run `edgefl run a --out b` again", "run `edgefl run a --out b` again"),
        ("sumo --fcd-output FILE, --osm-files, a --b", "sumo --fcd-output FILE, --osm-files, a --b"),
    ],
)
def test_an_option_becomes_the_argument_of_its_name(said: str, heard: str) -> None:
    with pytest.raises(EdgeflError) as refusal:
        refuse(said)
    assert str(refusal.value) == heard


def test_functions_of_analysis_speak_of_their_arguments_too(tmp_path: Path) -> None:
    """A ValueError names `partial=True`; the same error on the command line names the option."""
    (tmp_path / "run.json").write_text('{"schema_version": 1, "status": "interrupted", "seed": 1}')
    for function in (analysis.compare, analysis.load_runs, analysis.report_costs, analysis.sweep):
        with pytest.raises(ValueError, match="read incomplete runs with partial=True") as refusal:
            function(tmp_path)
        assert "edgefl resume" in str(refusal.value)
        assert "--" not in str(refusal.value)
    with pytest.raises(ValueError, match="two of them: choose one or two with keys="):
        naming_arguments(several)("two of them: choose one or two with --key")
    with pytest.raises(ValueError, match="with --partial"):
        load_as_read(tmp_path)
    assert analysis.compare is analysis.compare


def several(message: str, keys: tuple[str, ...] = ()) -> None:
    raise ValueError(message)


def test_calls_speak_of_their_arguments(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    calls = {
        "out=": lambda: edgefl.simulate(SMALL, tmp_path),
        "device=gpu": lambda: edgefl.simulate({**SMALL, **LEARNS}, tmp_path / "run", device="gpu"),
        "overrides=lr": lambda: edgefl.load_scenario(SMALL, ["lr"]),
        "out=picture.bmp": lambda: edgefl.preview(SMALL, "picture.bmp"),
    }
    for argument, call in calls.items():
        with pytest.raises(EdgeflError, match=re.escape(argument)) as refusal:
            call()
        assert "--" not in str(refusal.value)
    assert (tmp_path / "file").exists()


def test_tables_of_an_interrupted_run_suggest_no_option(tmp_path: Path) -> None:
    """The error says how to resume the run; a table has no argument that includes incomplete runs."""

    def stop(_: object) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        edgefl.simulate(SMALL, tmp_path / "run", on_round=stop)
    results = edgefl.Results(tmp_path / "run")
    calls = {
        "rounds": lambda: results.rounds,
        "ledger": lambda: results.ledger,
        "energy": results.energy,
        "report": results.report,
        "compare": lambda: edgefl.compare(results),
    }
    for name, call in calls.items():
        with pytest.raises(EdgeflError, match="continue it with `edgefl resume ") as refusal:
            call()
        assert "--" not in str(refusal.value), name
        assert ("partial=True" in str(refusal.value)) == (name == "compare")


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (
            lambda: edgefl.simulate(SMALL, out=5),
            "simulate(): out is 5, not a path: give text or a pathlib.Path",
        ),
        (lambda: edgefl.costs(3), "runs is 3, not a path"),
        (lambda: edgefl.compare(["a", 3.5]), "runs is 3.5, not a path"),
        (lambda: edgefl.resume(b"run"), "resume(): path is b'run', not a path"),
    ],
)
def test_a_value_that_is_no_path_is_refused(call: Callable[[], object], told: str) -> None:
    with pytest.raises(EdgeflError, match=re.escape(told)):
        call()


def test_a_key_given_as_an_argument_is_sent_to_the_scenario() -> None:
    """An unknown argument stays a TypeError; functions that take a scenario name the way to change its keys."""
    with pytest.raises(
        TypeError, match=r"argument 'seed'; set keys of the scenario in the scenario itself, as in scenario"
    ):
        edgefl.simulate(SMALL, seed=7)
    with pytest.raises(TypeError, match=r"argument 'seed'$"):
        edgefl.compare("runs", seed=7)


def test_a_signature_shows_names_and_plain_types() -> None:
    """help(edgefl.costs) does not show annotations for the command line."""
    functions = {name: one for name in edgefl.__all__ if inspect.isfunction(one := getattr(edgefl, name))}
    assert {name: one.__name__ for name, one in functions.items()} == {name: name for name in functions}
    assert not [name for name, one in functions.items() if "typer" in str(inspect.signature(one))]
    assert inspect.signature(edgefl.costs).parameters["partial"].annotation is bool


LEARNS = {
    "workload": None,
    "learning": {"dataset": "digits", "partition": "iid", "model": "logistic", "local": {"lr": 0.1}},
}


def test_every_option_in_an_error_has_an_argument() -> None:
    """Each option named in an error that is raised outside the commands is an argument of a public function."""
    functions = [one for name in edgefl.__all__ if inspect.isfunction(one := getattr(edgefl, name))]
    arguments = {name for one in functions for name in inspect.signature(one).parameters}
    only_commands = {"allow_code", "shard", "executor", "address", "jobs", "gpus", "object_store_memory"}
    foreign = {
        "proj",
        "fcd_output",
        "no_deps",
        "only_binary",
        "create_dirs",
        "pack_destination",
        "spf",
        "osm_files",
    }
    named = {
        option["name"].replace("-", "_")
        for room in ("run", "run_directory", "studies", "scenario", "learners")
        for file in (ROOT / "edgefl" / room).glob("*.py")
        for text in _of_errors(file)
        for part in text.split("`")[::2]
        for option in OPTION.finditer(part)
    }
    assert named
    known = {"set": "overrides", "key": "keys", "seed": "seeds", "session": "sessions"}
    assert {known.get(name, name) for name in named} - only_commands - foreign - arguments == set()


def _of_errors(file: Path) -> list[str]:
    """Return the strings in calls of EdgeflError."""
    calls = [
        node
        for node in ast.walk(ast.parse(file.read_text()))
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "EdgeflError"
    ]
    return [
        "".join(str(part.value) for part in ast.walk(call) if isinstance(part, ast.Constant))
        for call in calls
    ]


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"snapshot_rounds": 0}, "snapshot_rounds is 0: give a whole number of at least 1, or None"),
        ({"snapshot_rounds": 1.5}, "snapshot_rounds is 1.5: give"),
        ({"threads": -3}, "threads is -3: give"),
        ({"threads": 0}, "threads is 0: give"),
        ({"threads": "a"}, "threads is 'a': give"),
        ({"jobs": True}, "jobs is True: give"),
        ({"on_round": 3}, "on_round is 3: give a function"),
        ({"on_note": "a"}, "on_note is 'a': give a function"),
        ({"device": 3}, "device is 3: give a name as text"),
    ],
)
def test_a_wrong_argument_is_refused_before_anything_is_written(
    wrong: dict[str, object], message: str, tmp_path: Path
) -> None:
    calls = {
        edgefl.simulate: (SMALL, tmp_path / "run"),
        edgefl.resume: (tmp_path / "run",),
        edgefl.study: (SMALL, {"a": None}),
    }
    took = [call for call in calls if wrong.keys() <= inspect.signature(call).parameters.keys()]
    assert took
    for call in took:
        with pytest.raises(EdgeflError, match=re.escape(message)):
            call(*calls[call], **wrong)
    assert not list(tmp_path.iterdir())
