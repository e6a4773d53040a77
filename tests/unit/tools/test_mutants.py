"""Test that mutants are drawn with a seed, make the stated change, and are tried with their module's tests."""

from collections import Counter
from pathlib import Path

import pytest

from edgefl.channel import units
from tests.faults.table import KILLED
from tests.tools import mutants, mutating
from tests.tools.isolated import SLOW
from tests.tools.mutants import stages
from tests.tools.mutating import Mutant, drawn, of_file

SCORE = 0.85
CODE = '''
"""A module with 1 number in its words."""
LIMIT = 3

def f(a: int, b: int = 4) -> float:
    """Return 5."""
    if a < 2 and not b:
        raise ValueError(f"{a} is below 2")
    for one, other in zip([a], [b], strict=True):
        a = min(one, other) + 0.5
    return a
'''


@pytest.fixture
def found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Mutant]:
    """Return the mutants of CODE."""
    monkeypatch.setattr(mutating, "ROOT", tmp_path)
    (tmp_path / "code.py").write_text(CODE)
    return of_file(tmp_path / "code.py")


def test_operators_constants_and_bounds_in_bodies_are_changed_and_nothing_else(found: list[Mutant]) -> None:
    changes = {one.what for one in found}
    assert changes == {
        "a < 2 and (not b) -> a < 2 or not b",
        "a < 2 -> a <= 2",
        "2 -> 3",
        "not b -> not not b",
        "True -> False",
        "min(one, other) -> max(one, other)",
        "min(one, other) + 0.5 -> min(one, other) - 0.5",
        "0.5 -> 0.55",
    }
    assert [one.what for one in found if one.is_guard] == ["True -> False"]


def test_fewer_are_the_first_of_more_and_a_seed_gives_the_same() -> None:
    some = drawn(1, 3, ["channel", "analysis"])
    of_channel = [one for one in some if one.room == "channel"]
    assert drawn(1, 5, ["channel"])[:3] == of_channel
    assert Counter(one.room for one in some) == {"channel": 3, "analysis": 3}
    assert drawn(2, 3, ["channel"]) != of_channel


def test_a_mutant_is_in_force_while_it_is_injected(monkeypatch: pytest.MonkeyPatch) -> None:
    file = mutating.ROOT / "channel" / "units.py"
    (one,) = (each for each in of_file(file) if each.what == "value_db / 10.0 -> value_db * 10.0")
    one.inject(monkeypatch)
    assert units.db_to_linear(0.1) == 10.0
    monkeypatch.undo()
    assert units.db_to_linear(10.0) == 10.0


def test_a_mutant_meets_its_modules_tests_first() -> None:
    first, *others, of_room, all_of_room = stages(Mutant("channel/fading.py", "doppler_hz", ""))
    assert first == ["tests/unit/channel/test_fading.py"]
    assert any("tests/theory/test_channel_fading.py" in group for group in others), "it imports the module"
    assert all(law.startswith("tests/theory/test_channel_") for law in of_room)
    assert all_of_room == ["tests/unit/channel"]


def test_another_function_moves_no_place_of_the_draw(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Adding functions, lines or modules does not change a mutant's place in the draw."""
    monkeypatch.setattr(mutating, "ROOT", tmp_path)
    (tmp_path / "channel").mkdir()
    (tmp_path / "channel" / "code.py").write_text(CODE)
    before = [one.id for one in drawn(1, 100, ["channel"])]
    (tmp_path / "channel" / "code.py").write_text("\n\ndef g():\n    return 1 - 2\n" + CODE)
    (tmp_path / "channel" / "other.py").write_text(CODE)
    after = [one.id for one in drawn(1, 100, ["channel"])]
    assert len(before) == len(set(before)) == 7
    assert [one for one in after if one in before] == before


def test_tests_that_never_end_have_timed_out_and_those_that_always_take_long_say_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The first group is slow even without a mutant; the second takes 5 s without a mutant, and times out with it."""
    groups = stages(mutant := Mutant("channel/fading.py", "doppler_hz", ""))
    usual_s = {tuple(groups[0]): None, tuple(groups[1]): 5.0}

    def run(group: list[str], inject: object = None, *, limit_s: float) -> tuple[int, str, float]:
        return SLOW, "", limit_s

    monkeypatch.setattr(mutants, "run_pytest", run)
    monkeypatch.setattr(mutants, "_usual_s", usual_s.get)
    assert mutants.tried(mutant) == ("timed out", groups[1][0])


def test_the_last_run_is_good_enough_and_what_is_left_has_reasons() -> None:
    rows = [row for row in mutants.read() if row["seed"] == str(mutants.SEED)]
    count = Counter(row["verdict"] for row in rows)
    killed = sum(count[verdict] for verdict in KILLED)
    assert killed >= SCORE * (killed + count["survived"])
    assert not set(count) - {*KILLED, "survived", "equivalent"}
    assert all(row["by"] for row in rows), "tests or a reason"
    # `since` is set if a mutant survived at first, and existing or new tests now kill it
    assert all(
        bool(row["since"]) == (row["first"] == "survived" and row["verdict"] in KILLED) for row in rows
    )


def test_the_modules_and_tests_of_the_list_are_there() -> None:
    root, others = mutating.ROOT, mutants.OTHERS
    files = [
        file.relative_to(root)
        for folder in mutating.FOLDERS.values()
        for file in (root / folder).rglob("*.py")
    ]
    assert [part for part in others if not any(str(file).startswith(part) for file in files)] == []
    tests = {test for some in others.values() for test in some}
    assert [
        one for one in tests if not any((root / at / f"{one}.py").exists() for at in ("tests", "tests/unit"))
    ] == []
