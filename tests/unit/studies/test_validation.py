"""What `edgefl validate` says of a run: bits each way, and memory."""

from pathlib import Path

import pytest

from edgefl.studies.validation import check, summary

DIGITS = """\
name: digits
devices: {count: 8}
sessions: {name: schedule, count: 2, rounds: 3}
learning: {dataset: digits, partition: iid, model: logistic, batch: 16}
"""


@pytest.fixture
def digits(tmp_path: Path) -> Path:
    path = tmp_path / "digits.yaml"
    path.write_text(DIGITS)
    return path


@pytest.mark.parametrize(
    ("algorithm", "said"),
    [
        ("fedavg", "20,800"),
        ("scaffold", "41,600"),
        ("hypcluster", "20,800 down for each model that devices choose from, 20,800 up"),
        ("feddyn", "20,800 down (41,600 as a device begins a session), 20,800 up"),
        ("feddc", "41,600 down (62,400 as a device begins a session), 41,600 up"),
    ],
)
def test_what_goes_down_and_up_is_said(algorithm: str, said: str, digits: Path) -> None:
    """Logistic regression of 8 x 8 pixels and ten classes has 650 numbers of 32 bits."""
    checked = check(digits, overrides=[f"learning.algorithm={algorithm}"])
    assert f"bits per transfer: {said}" in summary(checked)


@pytest.mark.parametrize("algorithm", ["feddyn", "feddc"])
def test_what_devices_receive_as_a_session_begins_is_in_the_note_of_costs(
    algorithm: str, digits: Path
) -> None:
    sets = [f"learning.algorithm={algorithm}", "learning.payload=model"]
    (note,) = [one for one in check(digits, overrides=sets)[0].notes if "leave out" in one]
    assert "a further vector on the way down until a device's first update of a session" in note
