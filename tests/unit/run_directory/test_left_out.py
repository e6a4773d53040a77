"""Test a run's journal from which the probes of its sessions are left out."""

from typing import Any

from edgefl.contract import Opening, SessionStart, StageFacts
from edgefl.run_directory.lending import _without_probes
from edgefl.run_directory.plain import decoded, encoded

PROBE = StageFacts("probe", 1, evaluates=False)


def journal(probed: tuple[int, ...]) -> list[dict[str, Any]]:
    """Return a journal of a pilot session of devices 0 and 1, and of a session with `probed` devices in its probe."""

    def train(*ids: int) -> tuple[str, dict[str, Any], None]:
        return "train", {"ids": ids, "round": 1}, None

    def session(number: int) -> dict[str, Any]:
        return {"start": SessionStart(number, (0, 1), 1)}

    asked: list[tuple[str, dict[str, Any], Any]] = [
        ("learner", {}, None),
        ("session", session(1), StageFacts("pilot", None, opening=Opening())),
        train(0, 1),
        ("stage", {}, None),
        ("session", session(2), PROBE),
        train(*probed),
        ("aggregate", {"ids": probed}, None),
        ("stage", {}, PROBE),  # a check round
        train(*probed),
        ("stage", {}, StageFacts("train", None, opening=Opening("similarity", {2: 0.5}, (3,), 0.25, 1.5))),
        train(0, 1),
        ("stage", {}, None),
    ]
    entries = []
    for call, of, answered in asked:
        given = {name: encoded(value) for name, value in of.items()}
        entries.append({"cell": 0, "call": call, "asked": given, "answered": encoded(answered)})
    return entries


def opened(session: int, opening: Opening) -> Opening:
    assert (session, opening.warm_start) == (2, "similarity")
    return Opening("average", {}, opening.labels, opening.accuracy, opening.loss)


def test_a_session_opens_with_its_training() -> None:
    entries = journal(probed=(0, 1))
    kept, ends = zip(*_without_probes(entries, opened), strict=True)
    assert ends == (1, 2, 3, 4, 10, 11, 12)
    assert [*kept[:4], *kept[5:]] == [entries[end - 1] for end in ends if end != 10]
    assert (kept[4]["call"], kept[4]["asked"]) == ("session", entries[4]["asked"])
    opening = Opening("average", {}, (3,), 0.25, 1.5)
    assert decoded(kept[4]["answered"]) == StageFacts("train", None, opening=opening)


def test_who_joins_in_probes_is_a_member() -> None:
    """Device 2 joined during the probe, so the run that trains tests on its labels, which the other run may lack."""
    assert [end for _, end in _without_probes(journal(probed=(0, 2)), opened)] == [1, 2, 3, 4]
