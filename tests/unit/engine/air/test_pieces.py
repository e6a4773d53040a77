"""Test that transfers that continue in pieces are computed together, and at the right times."""

from typing import cast

import pytest

from edgefl.channel.changing_flow import ChangingFlow
from edgefl.engine.air import pieces
from edgefl.engine.air.pieces import Pieces


class Waits:
    def __init__(self, name: str, goes_on: bool = True) -> None:
        self.piece = (cast(ChangingFlow, name), 2.0) if goes_on else None

    def next_piece(self, slot: int) -> tuple[ChangingFlow, float] | None:
        return self.piece


@pytest.fixture
def foreseen(monkeypatch: pytest.MonkeyPatch) -> list[tuple[list[str], int, int]]:
    calls: list[tuple[list[str], int, int]] = []
    monkeypatch.setattr(
        pieces, "foresee", lambda flows, slot, snrs, until: calls.append((flows, slot, until))
    )
    return calls


def test_the_first_that_goes_on_at_a_slot_works_out_all_and_the_others_nothing(
    foreseen: list[tuple[list[str], int, int]],
) -> None:
    subject = Pieces()
    for name in ("a", "b", "c"):
        subject.expect(400, Waits(name))
    subject.expect(800, Waits("d"))
    for _ in range(3):
        subject.begin(400, 800)
    assert foreseen == [(["a", "b", "c"], 400, 800)]


def test_who_is_over_or_alone_is_not_worked_out(foreseen: list[tuple[list[str], int, int]]) -> None:
    subject = Pieces()
    subject.expect(400, Waits("over", goes_on=False))
    subject.expect(400, Waits("alone"))
    subject.begin(400, 800)
    assert foreseen == []


def test_slots_at_which_nobody_went_on_are_forgotten() -> None:
    subject = Pieces()
    for slot in (100, 200, 300, 400):
        subject.expect(slot, Waits("over", goes_on=False))
    subject.begin(300, 400)
    assert list(subject._expected) == [400]
