"""Test that a run ends when its model no longer improves on validation samples."""

from itertools import pairwise
from pathlib import Path
from typing import Any

import edgefl
from tests.tables import sections

PATIENCE = 4
SCENARIO: dict[str, Any] = sections(f"""
    name=enough; devices={{count: 5}}; record={{models: best}}
    sessions={{name: early_stopping, count: 1, patience: {PATIENCE}, min_rounds: 1, max_rounds: 80}}
    learning={{dataset: digits, partition: iid, model: logistic, local: {{batch: 32, lr: 0.1}}}}
    learning.evaluation={{validation: 0.2, every: 2}}
""")


def test_a_run_ends_with_so_many_tests_without_a_new_best(tmp_path: Path) -> None:
    run = edgefl.simulate(SCENARIO, out=tmp_path / "run", device="cpu")
    scores = run.rounds["accuracy_validation"].dropna().tolist()
    rises = [k for k, score in enumerate(scores) if score > max(scores[:k], default=0.0)]
    assert len(run.rounds) < 80
    assert len(scores) - 1 - rises[-1] == PATIENCE
    assert all(later - earlier <= PATIENCE for earlier, later in pairwise(rises))
    assert run.events.query("event == 'session_end'")["detail"].tolist() == ["early_stopping"]
    assert edgefl.load_model(run, kept="best").about["accuracy"] == max(scores)
