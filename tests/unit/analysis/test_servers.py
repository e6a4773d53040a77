"""Test that runs with several kinds of servers are compared over time and energy, but not over rounds."""

from collections.abc import Callable
from pathlib import Path

import pytest

from edgefl.analysis import compare, load_runs
from edgefl.analysis.reports.comparison import figures
from edgefl.analysis.reports.question import Question, answer
from edgefl.analysis.reports.settings import compare_settings, report
from edgefl.analysis.reports.sweep import sweep
from edgefl.analysis.runs.scenario_keys import several_servers
from tests.unit.analysis.conftest import rounds_of

Write = Callable[..., Path]
SESSION = [{"session": 1, "labels": "0 1", "accuracy_start": 0.1}]
FEDBUFF = "rounds: {server: {name: fedbuff, buffer: 10}}\n"
SYNCHRONOUS = "rounds: {server: synchronous}\n"


@pytest.fixture
def two_servers(write_run: Write) -> Path:
    """Write runs of two servers with rounds of 10 s and 5 J; to reach 0.8, `waits` needs two, `buffers` four."""
    accuracies = {"waits": [0.5, 0.8, 0.8, 0.8], "buffers": [0.3, 0.5, 0.7, 0.9]}
    for name, values in accuracies.items():
        for seed in (1, 2):
            scenario = FEDBUFF if name == "buffers" else SYNCHRONOUS
            about = {"variant": name, "seed": seed, "reference": "waits", "scenario": scenario}
            run = write_run(f"{name}{seed}", rounds_of(1, values), SESSION, **about)
    return run.parent


def test_the_same_server_is_nothing_to_say(write_run: Write) -> None:
    for name in "ab":
        run = write_run(name, [{"session": 1, "round": 1, "accuracy": 0.5}], SESSION, variant=name)
    (run / "scenario.yaml").write_text(SYNCHRONOUS)  # older runs lack this key
    assert several_servers(load_runs(run.parent).info) == ""


def test_servers_of_one_name_are_told_apart_by_the_parameters_that_differ(write_run: Write) -> None:
    for buffer in (5, 10):
        server = {"name": "fedbuff", "concurrency": 20, "buffer": buffer}
        about = {"variant": f"b{buffer}", "scenario": {"rounds": {"server": server}}}
        run = write_run(f"b{buffer}", [{"session": 1, "round": 1}], SESSION, **about)
    assert several_servers(load_runs(run.parent).info) == (
        "a round means different things in these variants (rounds.server: b5 fedbuff (buffer 5), b10 fedbuff (buffer"
        " 10))"
    )


def test_a_variant_with_its_server_s_name_is_named_once(write_run: Write) -> None:
    for variant, server in (("fedasync", "fedasync"), ("buffers", "fedbuff")):
        run = write_run(variant, [{"session": 1, "round": 1}], SESSION, variant=variant)
        (run / "scenario.yaml").write_text(f"rounds: {{server: {{name: {server}}}}}\n")
    told = several_servers(load_runs(run.parent).info)
    assert "(rounds.server: " in told
    assert {"fedasync", "buffers fedbuff"} == set(
        told.partition("rounds.server: ")[2].rstrip(")").split(", ")
    )


def test_several_servers_compare_over_seconds_and_joules(two_servers: Path) -> None:
    comparison = compare(two_servers, target=0.8)
    table = comparison.table.set_index("variant")
    assert table["seconds_to_target_mean"].to_dict() == {"waits": 20.0, "buffers": 40.0}
    assert table["joules_to_target_mean"].to_dict() == {"waits": 10.0, "buffers": 20.0}
    of_rounds = [
        "rounds_to_target_median",
        "accuracy_first_mean",
        "gain_mean",
        "latency_s_mean",
        "round_energy_j_mean",
    ]
    assert table[of_rounds].isna().all(axis=None)
    text = (comparison.out / "comparison.md").read_text()
    assert "Rounds to" not in text
    assert "First 10 rounds" not in text
    said = " ".join(comparison.notes)
    assert "rounds.server: buffers fedbuff, waits synchronous" in said
    assert "buffers needs 2.0 times the time of waits" in " ".join(comparison.verdicts)


def test_several_servers_without_training_draw_no_front(write_run: Write) -> None:
    """Without training, and with rounds that cannot be compared, there are no points for a Pareto front."""
    for name in ("waits", "buffers"):
        about = {"variant": name, "scenario": FEDBUFF if name == "buffers" else SYNCHRONOUS}
        run = write_run(name, [{"session": 1, "round": 1}], [{"session": 1, "labels": ""}], **about)
    drawn = figures(compare(run.parent))
    assert "comparison" in drawn
    assert "comparison_pareto" not in drawn


@pytest.mark.parametrize("column", ["rounds", "gain", "first"])
def test_columns_that_count_rounds_are_refused(two_servers: Path, column: str) -> None:
    with pytest.raises(ValueError, match=f"'{column}' counts rounds, and .*: compare seconds or joules"):
        compare(two_servers, columns=(column, "seconds"))


def test_a_question_about_rounds_is_refused(two_servers: Path) -> None:
    asked = Question("rounds_to_target", ("waits", "buffers"), 1.0, 5, target=0.8)
    with pytest.raises(ValueError, match="'rounds_to_target' counts rounds"):
        answer(two_servers, asked, {(): (1, 2)})
    found = answer(
        two_servers, Question("seconds_to_target", ("waits", "buffers"), 1.0, 5, target=0.8), {(): (1, 2)}
    )
    assert found.table.loc[0, "mean"] == -20.0


def test_a_sweep_over_rounds_is_refused(two_servers: Path) -> None:
    with pytest.raises(ValueError, match="'rounds' counts rounds"):
        sweep(two_servers, metric="rounds", target=0.8)


def write_grid(write_run: Write, server: Callable[[str, str], str], accuracy: float | str = 0.5) -> Path:
    """Write a grid of two values of lr and the variants a and b, with `server(value, variant)` in each run."""
    for value in ("0.1", "0.2"):
        for name in "ab":
            rounds = [{"session": 1, "round": 1, "accuracy": accuracy}]
            about = {"variant": name, "setting": {"lr": value}, "reference": "a"}
            scenario = f"learning: {{local: {{lr: {value}}}}}\nrounds: {{server: {server(value, name)}}}\n"
            run = write_run(f"grid/lr-{value}/{name}", rounds, SESSION, scenario=scenario, **about)
    return run.parents[1]


def by_setting(value: str, _: str) -> str:
    return f"{{name: fedbuff, buffer: {10 * float(value):.0f}}}"


def test_in_a_grid_no_variant_leads_another_server(write_run: Write) -> None:
    root = write_grid(write_run, lambda _, name: "fedasync" if name == "b" else "synchronous")
    settings = compare_settings(root)
    assert report(settings).verdicts == []
    assert (settings.table["best"] == "").all()
    assert "**" not in (root / "settings.md").read_text()
    assert any(
        "in these variants (rounds.server: a synchronous, b fedasync)" in note for note in settings.notes
    )


def test_a_grid_of_servers_is_not_swept_over_rounds(write_run: Write) -> None:
    """Within a setting the variants have one server, so they are compared; the settings are not."""
    root = write_grid(write_run, by_setting)
    with pytest.raises(
        ValueError, match="'accuracy' counts rounds, and a round means different things in these set"
    ):
        sweep(root, keys=["learning.local.lr"], metric="accuracy")
    settings = compare_settings(root)
    assert "level with the best of them in 2" in report(settings).verdicts[0]
    assert any("(rounds.server: fedbuff (buffer 1), fedbuff (buffer 2))" in note for note in settings.notes)


def test_a_sweep_of_servers_without_training_is_noted(write_run: Write) -> None:
    root = write_grid(write_run, by_setting, "")
    found = sweep(root, keys=["learning.local.lr"])
    assert any(note.endswith("so the costs of a round do not compare") for note in found.notes)
