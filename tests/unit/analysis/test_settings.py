"""Test a grid's table, which shows the variant with the best mean in each setting and session."""

import json
import math
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest

from edgefl.analysis import compare_settings, report_choice
from edgefl.analysis.commands.line import main
from edgefl.analysis.reports.settings import figures, report

Write = Callable[..., Path]
SESSIONS = [{"session": s, "labels": "0 1"} for s in (1, 2, 3)]


def write_grid(write_run: Write, accuracies: dict[tuple[str, str, int], list[float]]) -> Path:
    """Write runs by (setting, variant, seed), with two rounds per session, 0.1 below and above its given mean."""
    for (setting, variant, seed), means in accuracies.items():
        rounds = [{"session": 1, "round": 1, "accuracy": 0.5, "phase": "pilot"}]
        for session, mean in enumerate(means, start=2):
            rounds += [
                {"session": session, "round": t, "accuracy": mean + d} for t, d in ((1, -0.1), (2, 0.1))
            ]
        about = {"variant": variant, "seed": seed, "reference": "ours", "setting": {"alpha": setting}}
        path = write_run(f"alpha-{setting}/{variant}/{seed}", rounds, SESSIONS, **about)
    return path.parents[2]


@pytest.mark.usefixtures("rendered")
def test_means_deviations_and_leads(write_run: Write) -> None:
    root = write_grid(
        write_run,
        {
            ("0.3", "ours", 1): [0.8, 0.6],
            ("0.3", "ours", 2): [0.6, 0.6],
            ("0.3", "other", 1): [0.5, 0.7],
            ("0.3", "other", 2): [0.5, 0.7],
            ("0.7", "ours", 1): [0.9, 0.9],
            ("0.7", "ours", 2): [0.9, 0.9],
            ("0.7", "other", 1): [0.2, 0.4],
            ("0.7", "other", 2): [0.2, 0.4],
        },
    )
    settings = compare_settings(root)
    # session 1 is the pilot, and session 2 is the first session with these labels, so only session 3 recurs
    assert settings.sessions == (3,)
    settings = compare_settings(root, sessions=[2, 3])
    table = settings.table.set_index(["alpha", "session"])
    assert table.loc[("0.3", 2), "ours_mean"] == pytest.approx(0.7)
    assert table.loc[("0.3", 2), "ours_std"] == pytest.approx(0.2 / math.sqrt(2))
    assert table["lead"].tolist() == pytest.approx([0.2, -0.1, 0.7, 0.5])
    assert table["best"].tolist() == ["ours", "other", "ours", "ours"]
    text = (root / "settings.md").read_text()
    assert "ours is ahead of all others in 3 of 4 pairs" in text
    assert "by 50.0 points (median; 2 seeds: no test)." in text
    assert "It is behind at alpha 0.3, session 3: other leads by 10.0" in text
    assert "**70.0 ± 0.0**" in text
    assert r"\textbf{70.0 $\pm$ 14.1}" in (root / "settings.tex").read_text()
    assert (root / "settings.png").stat().st_size > 10_000
    assert len(pd.read_csv(root / "settings.csv")) == 4
    # count only the first round, which is 0.1 below each mean
    first = compare_settings(root, sessions=[2], first_rounds=1).table
    assert first["ours_mean"].tolist() == pytest.approx([0.6, 0.8])


def test_leads_are_counted_with_their_certainty(write_run: Write) -> None:
    """The first lead is the same with each seed, the second is not; the third setting trains the same models."""
    runs = {}
    for seed, off in ((1, -0.2), (2, 0.1), (3, 0.2)):
        for setting in ("0.3", "0.7"):
            runs[setting, "ours", seed] = [0.5, 0.7 + seed / 100]
            runs[setting, "other", seed] = [0.5, 0.6 + seed / 100]
        runs["0.9", "ours", seed], runs["0.9", "other", seed] = [0.5, 0.5 + off], [0.5, 0.4]
    settings = compare_settings(write_grid(write_run, runs))
    (said,) = report(settings).verdicts
    assert said.endswith(
        "by 10.0 points (median; 3 seeds: 2 of these leads are clear (paired 95 % interval))."
    )
    assert settings.table["lead_clear"].tolist() == [True, True, False]
    (note,) = settings.notes
    assert note == "these settings trained the same models and are not independent: alpha 0.3 = alpha 0.7"


def test_a_tie_is_no_lead_of_another_variant(write_run: Write) -> None:
    """The variants are level in two settings, and the reference is behind in the third, so it has no lead to name."""
    runs = {}
    for setting, other in (("0.3", 0.6), ("0.7", 0.6), ("0.9", 0.8)):
        for seed in (1, 2, 3):
            runs[setting, "ours", seed], runs[setting, "other", seed] = [0.5, 0.6], [0.5, other]
    assert report(compare_settings(write_grid(write_run, runs))).verdicts == [
        "ours is ahead of all others in 0 of 3 pairs of setting and session, and level with the best of them in 2.",
        "It is behind at alpha 0.9, session 3: other leads by 20.0.",
    ]


def test_a_session_that_a_variant_lacks_with_one_seed_is_compared_with_the_other(write_run: Write) -> None:
    """`other` ends after two sessions with seed 2, so session 3 has one pair, with a lead of 0.2."""
    ours = {seed: [0.5, score] for seed, score in ((1, 0.6), (2, 0.9))}
    root = write_grid(write_run, {("0.3", "ours", seed): scores for seed, scores in ours.items()})
    write_grid(write_run, {("0.3", "other", seed): [0.3, 0.4] for seed in (1, 2)})
    run = root / "alpha-0.3" / "other" / "2"
    for name in ("rounds", "sessions"):
        table = pd.read_csv(run / f"{name}.csv")
        table[table["session"] < 3].to_csv(run / f"{name}.csv", index=False)
    found = compare_settings(root)
    assert (
        "some numbers are of fewer than 2 seeds, those with such a session: alpha 0.3, session 3: 1"
        in found.notes
    )
    lacking = "only sessions that all runs have are compared; left out: session 3 (seed 2) of ours"
    assert f"alpha 0.3: {lacking}" in found.notes
    table = found.table.set_index("session")
    assert table["seeds"].to_dict() == {2: 2, 3: 1}
    assert table["lead"].to_dict() == pytest.approx({2: 0.2, 3: 0.2})


def test_a_session_compared_in_one_setting_is_compared_in_all(write_run: Write) -> None:
    """At 0.3 session 3 recurs, at 0.9 the runs end after session 2, which is shown for both settings."""
    scores = {("0.3", "ours", 1): [0.5, 0.6], ("0.3", "other", 1): [0.4, 0.5]}
    root = write_grid(write_run, {**scores, ("0.9", "ours", 1): [0.7], ("0.9", "other", 1): [0.8]})
    found = compare_settings(root)
    assert found.sessions == (2, 3)
    shown = found.table.set_index(["alpha", "session"])["ours_mean"]
    assert shown.to_dict() == pytest.approx({("0.3", 2): 0.5, ("0.3", 3): 0.6, ("0.9", 2): 0.7})
    assert not any("left out" in note for note in found.notes)


def test_settings_with_fewer_rounds_are_named(write_run: Write) -> None:
    """With alpha 0.3 `other` ends after one round, of accuracy 0.5, so `ours` also counts with one round, of 0.6."""
    runs = {
        (alpha, name, 1): [mean] for alpha in ("0.3", "0.9") for name, mean in (("ours", 0.7), ("other", 0.6))
    }
    root = write_grid(write_run, runs)
    rounds = root / "alpha-0.3" / "other" / "1" / "rounds.csv"
    pd.read_csv(rounds).head(2).to_csv(rounds, index=False)
    found = compare_settings(root)
    assert found.table["averaged_rounds"].tolist() == [1, 2]
    assert found.table["ours_mean"].tolist() == pytest.approx([0.6, 0.7])
    assert [
        note.rpartition(": ")[2] for note in found.notes if "average fewer than the first 2 rounds" in note
    ] == ["1"]
    assert "over at most the first 2 rounds of session 2" in report(found).caption


def test_command(write_run: Write, capsys: pytest.CaptureFixture[str]) -> None:
    root = write_grid(write_run, {("0.3", "ours", 1): [0.8, 0.6], ("0.3", "other", 1): [0.5, 0.7]})
    assert main(["settings", str(root), "--session", "2"]) == 0
    said = capsys.readouterr().out
    assert "ours is ahead of all others in 1 of 1 pairs" in said
    assert "over the first 2 rounds of session 2" in said, "sessions have fewer than ten rounds"
    assert main(["settings", str(root), "--session", "9"]) == 2
    assert "has no session 9" in capsys.readouterr().err


def test_a_setting_whose_run_failed(write_run: Write) -> None:
    """A failed run leaves a gap in its setting's row; a note names it, and no variant leads in this setting."""
    root = write_grid(
        write_run,
        {
            ("0.3", "ours", 1): [0.8, 0.6],
            ("0.3", "other", 1): [0.5, 0.7],
            ("0.7", "other", 1): [0.2, 0.4],
            ("0.9", "ours", 1): [0.2, 0.4],
        },
    )
    write_run("alpha-0.7/ours/1", [], [], status="failed", error="training diverged", variant="ours", seed=1)
    with pytest.warns(UserWarning, match="it failed"):
        settings = compare_settings(root, sessions=[2])
    table = settings.table.set_index("alpha")
    assert table["ours_mean"].tolist() == pytest.approx([0.8, math.nan, 0.2], nan_ok=True)
    assert table["other_mean"].tolist() == pytest.approx([0.5, 0.2, math.nan], nan_ok=True)
    assert table["lead"].tolist() == pytest.approx([0.3, math.nan, math.nan], nan_ok=True)
    text = (root / "settings.md").read_text()
    assert "| 0.7 | — | **20.0** |" in text
    assert "ours is ahead of all others in 1 of 1 pairs" in text
    assert "Note: no completed run of ours in alpha 0.7." in text
    assert "Note: no completed run of other in alpha 0.9." in text
    assert "ours/1: it failed (training diverged)" in text


def test_a_value_is_chosen_by_the_seeds_that_all_values_have(write_run: Write) -> None:
    """With seed 1, 0.3 is best; seed 2, an easy one, has only a run with 0.7."""
    runs = {("0.3", "ours", 1): [0.5, 0.6], ("0.7", "ours", 1): [0.5, 0.5], ("0.7", "ours", 2): [0.9, 0.9]}
    found = report_choice(write_grid(write_run, runs), by="test")
    assert found.numbers["choice.csv"]["value"].tolist() == ["0.3"]
    assert found.numbers["choice_values.csv"]["seeds"].tolist() == [1, 1]
    assert any("only the seeds that all settings have are compared: 1" in said for said in found.sentences)


def test_seeds_that_only_some_settings_have_are_left_out(write_run: Write) -> None:
    runs = {(setting, name, 1): [0.8, 0.6] for setting in ("0.3", "0.7") for name in ("ours", "other")}
    settings = compare_settings(write_grid(write_run, runs | {("0.3", "ours", 2): [0.1, 0.1]}))
    assert settings.seeds == (1,)
    assert "only the seeds that all settings have are compared: 1" in settings.notes


def write_costs(write_run: Write, latencies_s: dict[tuple[str, str, int], list[float]]) -> Path:
    """Write runs without training by (setting, variant, seed), with these latencies per session and 1 mJ per s."""
    for (setting, variant, seed), latencies in latencies_s.items():
        rounds = [
            {"session": s, "round": 1, "latency_s": t, "latency_mean_s": t / 2, "energy_j": t / 1000}
            for s, t in enumerate(latencies, start=1)
        ]
        about = {"variant": variant, "seed": seed, "reference": "ours", "setting": {"MHz": setting}}
        sessions = [{"session": 1, "labels": ""}, {"session": 2, "labels": ""}]
        path = write_run(f"MHz-{setting}/{variant}/{seed}", rounds, sessions, **about)
    return path.parents[2]


@pytest.mark.usefixtures("rendered")
def test_without_training_settings_are_compared_by_latency_and_energy(
    write_run: Write, capsys: pytest.CaptureFixture[str]
) -> None:
    root = write_costs(
        write_run,
        {
            ("20", "ours", 1): [0.2, 0.4],
            ("20", "ours", 2): [0.4, 0.6],
            ("20", "fair", 1): [0.8, 0.8],
            ("20", "fair", 2): [0.8, 0.8],
            ("100", "ours", 1): [0.1, 0.1],
            ("100", "ours", 2): [0.1, 0.1],
        },
    )
    settings = compare_settings(root)
    assert not settings.trained
    with pytest.raises(ValueError, match="no accuracy on validation samples"):
        report_choice(root)
    table = settings.table.set_index("MHz")
    assert table.loc["20", "ours_latency_s_mean"] == pytest.approx(0.4)
    assert table.loc["20", "ours_latency_s_std"] == pytest.approx(0.2 / math.sqrt(2))
    assert table.loc["20", "fair_latency_mean_s_mean"] == pytest.approx(0.4)
    assert table.loc["20", "ours_round_energy_j_mean"] == pytest.approx(0.4e-3)
    assert table.loc["20", "ours_energy_j_mean"] == pytest.approx(0.8e-3), "energy of the whole run"
    assert math.isnan(table.loc["100", "fair_latency_s_mean"])
    assert (root / "settings.png").stat().st_size > 10_000
    text = (root / "settings.md").read_text()
    assert "| MHz | Latency (ms): ours | Latency (ms): fair |" in text
    assert "| 20 | 400 ± 141 | 800 ± 0 | 200 ± 71 | 400 ± 0 | 0.400 ± 0.141 | 0.800 ± 0.000 |" in text
    assert "no completed run of fair in MHz 100" in text
    assert r"\multicolumn{2}{c}{Latency (ms)}" in (root / "settings.tex").read_text()
    assert main(["settings", str(root), "--session", "1"]) == 0
    assert "Latency and energy of a round, mean over the rounds of session 1" in capsys.readouterr().out
    assert compare_settings(root, sessions=[2]).table["ours_latency_s_mean"].max() == pytest.approx(0.5)


def test_runs_of_no_grid_are_refused(write_run: Write) -> None:
    root = write_run("a", [{"session": 1, "round": 1, "accuracy": 0.5}], [{"session": 1}])
    with pytest.raises(ValueError, match="belong to no grid: use `edgefl compare`"):
        compare_settings(root)


def test_the_names_of_settings_lie_within_the_figure(write_run: Write) -> None:
    """Long names of settings fit to the left of the first panel."""
    name = "a partition of a very long name indeed"
    root = write_grid(write_run, {(name, "ours", 1): [0.8, 0.6], (name, "other", 1): [0.5, 0.7]})
    figure = figures(compare_settings(root, sessions=[2]))["settings"]
    figure.draw_without_rendering()
    (label,) = figure.axes[0].get_yticklabels()
    assert name in label.get_text()
    assert label.get_window_extent().x0 >= 0.0


def test_settings_stand_in_the_order_of_the_study_file(write_run: Write) -> None:
    """Labels are not sorted by name; a setting that was added later is in the list of the latest runs only."""
    order = ["none", "all", "half"]
    root = write_grid(write_run, {(label, "ours", 1): [0.8, 0.6] for label in order})
    for label in order:
        file = root / f"alpha-{label}" / "ours" / "1" / "run.json"
        known = order if label == "half" else order[:2]
        file.write_text(json.dumps(json.loads(file.read_text()) | {"settings": {"alpha": known}}))
    assert list(dict.fromkeys(compare_settings(root).table["alpha"])) == order


@pytest.mark.parametrize("axis", ["rounds", "session", "best", "lead", "ours_mean", "seed", "variant"])
def test_an_axis_may_have_any_name(axis: str, write_run: Write) -> None:
    root = write_grid(write_run, {(a, name, 1): [0.5] for a in ("0.3", "0.9") for name in ("ours", "other")})
    for path in root.glob("*/*/1/run.json"):
        about = path.read_text()
        path.write_text(about.replace('"alpha"', f'"{axis}"'))
    found = compare_settings(root)
    assert found.axes[0].startswith(axis)
    assert found.table[found.axes[0]].tolist() == ["0.3", "0.9"]
    assert "0.3" in (root / "settings.md").read_text()
