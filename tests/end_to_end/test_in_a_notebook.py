"""Test that a study in a notebook shows progress within a second, and at the end a verdict, a table and a figure."""

from pathlib import Path

import pytest

SOON_S = 1.0
# the first cell records when outputs appear, in processor time, which does not depend on other processes
CELLS = (
    """
import time
shown_s = []
get_ipython().display_pub.register_hook(lambda message: shown_s.append(time.process_time()) or message)
""",
    """
began_s = time.process_time()
import edgefl
edgefl.study(
    {
        "name": "small",
        "devices": {"count": 3},
        "radio": {"preset": "journal"},
        "sessions": {"name": "schedule", "count": 1, "rounds": 3},
        "workload": {"payload_bits": 1_000_000, "flops_per_sample": 1000},
    },
    {"narrow": {"radio.bandwidth_hz": 1.0e7}, "wide": {"radio.bandwidth_hz": 2.0e7}},
    seeds=[1, 2],
    out="runs/small",
    jobs=1,
)
""",
    "shown_s[0] - began_s",
)


def test_a_study_shows_progress_and_then_its_answer(tmp_path: Path) -> None:
    nbformat = pytest.importorskip("nbformat")
    nbclient = pytest.importorskip("nbclient")
    pytest.importorskip("ipykernel")
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(text) for text in CELLS])
    nbclient.NotebookClient(notebook, resources={"metadata": {"path": str(tmp_path)}}).execute()
    _, study, waited = notebook.cells
    progress, answer = study.outputs
    shown = progress["data"]["text/html"]
    assert shown.count("<progress") == 4
    assert shown.count('value="1.000"') == 4
    assert "runs/small: 4 runs, 2 variants, 2 seeds" in shown
    assert answer["data"]["text/plain"] == "StudyResults('runs/small': 4 runs, 2 variants, 2 seeds)"
    page = answer["data"]["text/html"]
    assert page.index("wide needs") < page.index("<table>") < page.index("data:image/png;base64,")
    assert float(waited.outputs[0]["data"]["text/plain"]) < SOON_S
