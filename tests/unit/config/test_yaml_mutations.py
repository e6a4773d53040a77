"""Test that changed text raises no exception but EdgeflError, and that parsed values survive a round trip."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from edgefl.config.error_messages import LONGEST_MESSAGE
from edgefl.config.yaml_source import parse_value, write
from edgefl.errors import EdgeflError
from edgefl.scenario import scenario as scenarios

GOOD = """\
# a comment
name: "small"
seed: 7
devices: {count: 4, mobility: {name: random_waypoint, pause_s: 1.5}}
rounds:
  selector: &two {name: uniform, count: 2}
sessions:
  <<: *two
  name: schedule
  rounds: 3
learning:
  local:
    lr: &lr 0.1
  dataset: digits
  model: logistic
  algorithm: {name: fedprox, mu: *lr}
"""
# characters with a meaning in YAML, and some that YAML forbids
PIECES = [
    "\n", "\n  ", "\n    ", "\t", "\r", " ", ": ", "- ", "? ", "# ", "---\n", "...\n", "%YAML 1.1\n", "{", "}", "[",
    "]", ",", "&fast ", "*fast", "&b ", "*b", "<<: ", "!", "!!int ", "!!str ", "!!map ", "!<x> ", "|\n", ">-\n", "'",
    '"', "\\", '"\\x00"', '"\\UFFFFFFFF"', "@", "`", "~", "null", "true", "off", "010", "0x1F", "1:30", "1e5",
    "1e999", ".nan", "-.inf", "9" * 400, "2026-13-45", "\0", "\x7f", "\x85", "\u2028", "\ufeff", "\ud800", "ü", "🦆",
    "name: ", "mu: -1", "[" * 60, "[" * 60 + "]" * 60, "lr: [0.1]", "learning.", "name: {}",
]  # fmt: skip
BOUNDED = settings(
    max_examples=100,
    derandomize=True,
    database=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)

pieces = st.sampled_from(PIECES) | st.text(max_size=3)
# position, number of deleted characters, and the text that replaces them
edits = st.lists(st.tuples(st.integers(0, len(GOOD)), st.integers(0, 12), pieces), min_size=1, max_size=5)


def edited(changes: list[tuple[int, int, str]]) -> str:
    text = GOOD
    for at, gone, piece in changes:
        text = text[:at] + piece + text[at + gone :]
    return text


@BOUNDED
@given(text=st.lists(pieces, max_size=12).map("".join))
def test_any_text_is_read_or_refused(text: str) -> None:
    with refusals() as messages:
        value = parse_value(text, "--set x")
        # compare strings, because nan does not equal itself
        assert repr(parse_value(write(value), "--set x")) == repr(value)
    assert all(message.startswith("--set x: ") for message in messages)


@BOUNDED
@given(changes=edits)
def test_any_edit_of_a_scenario_is_read_or_refused(
    tmp_path: Path, changes: list[tuple[int, int, str]]
) -> None:
    path = tmp_path / "a.yaml"
    path.write_bytes(edited(changes).encode("utf-8", "surrogatepass"))
    with refusals() as messages:
        loaded = scenarios.load(path)
        path.write_text(scenarios.dump(loaded), encoding="utf-8")
        assert scenarios.dump(scenarios.load(path)) == scenarios.dump(loaded)
    assert all(message.startswith(f"{path}:") for message in messages)


def test_the_unedited_scenario_is_read(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(GOOD)
    loaded = scenarios.load(tmp_path / "a.yaml")
    assert loaded.learning is not None
    assert (loaded.sessions.count, loaded.learning.algorithm.mu) == (2, 0.1)


@contextmanager
def refusals() -> Iterator[list[str]]:
    """Collect the message of an EdgeflError, and check its length."""
    messages: list[str] = []
    try:
        yield messages
    except EdgeflError as error:
        messages.append(str(error))
    assert all(len(message) <= LONGEST_MESSAGE for message in messages)
