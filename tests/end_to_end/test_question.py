"""Test that a study with a question adds seeds until the interval is narrow enough, and repeats no run."""

from pathlib import Path

import pandas as pd
import pytest

from tests.end_to_end.directories import runs
from tests.tools.called import code_of

RADIO = """\
name: radio
devices: {count: 4}
sessions: {name: schedule, count: 1, rounds: 2}
radio: {preset: journal}
workload: {payload_bits: 100000, flops_per_sample: 1000}
"""
STUDY = """\
name: asked
scenario: radio.yaml
seeds: [1, 2, 3]
variants: {narrow: {radio.bandwidth_hz: 5.0e+6}, wide: {radio.bandwidth_hz: 20.0e+6}}
question: {metric: latency_s, variants: [wide, narrow], precision: 0.0001, budget: 7}
"""


@pytest.mark.usefixtures("unrendered")
def test_a_study_answers_its_question(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "radio.yaml").write_text(RADIO)
    study, out = tmp_path / "study.yaml", tmp_path / "out"
    study.write_text(STUDY)
    assert code_of("study", study, "--out", out, "--jobs", "1", "--seed", "1") == 0
    assert not (out / "question.csv").exists(), "with a given seed, the question is skipped"
    code_of("study", study, "--out", out, "--jobs", "1")
    printed = " ".join(capsys.readouterr().out.split())
    row = pd.read_csv(out / "question.csv").iloc[0]
    assert 5 <= row["pairs"] <= 7
    assert row["high"] < 0
    assert row["better"] == "wide"
    assert "latency_s of wide minus that of narrow is -0.00" in printed
    assert printed.count("wide is better.") == 1
    made = runs(out)
    assert len(made) == 2 * row["pairs"]
    code_of("study", study, "--out", out, "--jobs", "1")
    assert runs(out) == made
