"""Test that settings are chosen by validation samples and reported on test data."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from edgefl import Results, load_model, load_scenario, simulate
from edgefl.analysis import report_choice
from edgefl.learning.data.validation import split_off
from edgefl.learning.datasets.digits import Digits
from edgefl.studies import StudyOptions, plan
from edgefl.studies import run as run_study
from tests.tables import sections

EXACT = 1e-9
SHARE = 0.2
BASE: dict[str, Any] = sections(f"""
    name=validated; seed=3; devices={{count: 6}}; sessions={{name: schedule, count: 1, rounds: 6}}
    learning={{dataset: digits, partition: iid, model: logistic, local: {{batch: 16}}}}
    learning.evaluation={{validation: {SHARE}}}
""")
STUDY = """\
name: choosing
scenario: base.yaml
seeds: [1, 2]
variants: {fedavg: {}, fedprox: {learning.algorithm: fedprox}}
grid: {learning.local.lr: [0.0001, 0.01, 0.1]}
choose: {key: learning.local.lr, by: validation}
"""


def run(out: Path, **changes: Any) -> Results:
    return simulate(load_scenario(BASE).with_(**changes), out, device="cpu")


def test_validation_accuracy_is_that_of_the_model_on_these_samples(tmp_path: Path) -> None:
    results = run(tmp_path / "run", record__models="best")
    _, apart = split_off(Digits().load(), SHARE)
    assert apart is not None
    for kept, told in (("last", results.rounds.accuracy_validation.iloc[-1]), ("best", None)):
        model = load_model(results, kept=kept)
        found = model.module(model.normalised(apart.x)).argmax(1).numpy() == apart.y
        wanted = results.rounds.accuracy_validation.max() if told is None else told
        assert found.mean() == pytest.approx(wanted, abs=EXACT)


def test_devices_are_validated_on_samples_like_their_own(tmp_path: Path) -> None:
    """If each device has half of the labels, validation and test accuracies are of these labels alone."""
    changes = {
        "learning__partition": "half",
        "learning__evaluation__tested_on": "devices",
        "learning__evaluation__every": 2,
    }
    results = run(tmp_path / "run", **changes)
    assert results.rounds.accuracy_validation.notna().tolist() == [False, True] * 3
    assert np.corrcoef(results.rounds.accuracy.dropna(), results.rounds.loss_validation.dropna())[0, 1] < 0


def test_a_run_without_the_setting_has_no_such_columns(tmp_path: Path) -> None:
    results = run(tmp_path / "run", learning__evaluation__validation=None)
    assert not [name for name in results.rounds if "validation" in name]


@pytest.fixture
def study(tmp_path: Path) -> Path:
    import yaml

    (tmp_path / "base.yaml").write_text(yaml.safe_dump(BASE))
    (tmp_path / "study.yaml").write_text(STUDY)
    return tmp_path / "study.yaml"


def test_a_study_chooses_by_validation_and_reports_the_test(study: Path, tmp_path: Path) -> None:
    read = plan(study)
    assert read.choose is not None
    assert (read.choose.key, read.choose.by) == ("learning.local.lr", "validation")
    run_study(read, tmp_path / "runs", StudyOptions(jobs=1))
    report = report_choice(tmp_path / "runs", key=read.choose.key, by=read.choose.by)
    made = report.numbers["choice.csv"].set_index("variant")
    rows = []
    for path in (tmp_path / "runs").rglob("rounds.csv"):
        last = pd.read_csv(path).iloc[-1]
        variant, point = path.parent.parent.name, path.parent.parent.parent.name
        rows.append((variant, point.removeprefix("lr-"), last.accuracy, last.accuracy_validation))
    means = (
        pd.DataFrame(rows, columns=["variant", "value", "test", "validation"])
        .groupby(["variant", "value"])
        .mean()
    )
    for variant in ("fedavg", "fedprox"):
        wanted = means.loc[variant].validation.idxmax()
        assert made.loc[variant, "value"] == wanted
        assert made.loc[variant, "accuracy"] == pytest.approx(means.loc[(variant, wanted), "test"], abs=EXACT)
        assert made.loc[variant, "best_accuracy"] == pytest.approx(means.loc[variant].test.max(), abs=EXACT)
