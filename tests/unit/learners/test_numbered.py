"""Test a learner that receives device numbers instead of ids, and whose answers are mapped back to ids."""

from typing import Any

import numpy as np
import pytest

from edgefl.contract import DeviceScores, Evaluation, SessionStart, Staleness
from edgefl.learners.numbered import NumberedLearner
from edgefl.testing.cell import Scripted

IDS = np.array([2, 5, 7])


class Learner(Scripted):
    """A scripted learner with the additional attributes of a learner that trains."""

    sees_time = False
    parameters = 1
    started: list[SessionStart]

    def session(self, start: SessionStart) -> Any:
        self.started = [start]
        return super().session(start)

    def stages(self) -> Any:
        return super().session(self.started[0])


def numbered(**of: Any) -> tuple[Learner, NumberedLearner]:
    learner = Learner(**of)
    return learner, NumberedLearner(learner, IDS)


def test_ids_are_numbers_within() -> None:
    learner, outer = numbered(scalars={"loss": [0.0, 1.0, 2.0]})
    stage = next(iter(outer.session(SessionStart(1, (2, 7), 3))))
    local = stage.train((5, 7), 1)
    stage.aggregate((7,))
    assert learner.started[0].ids == (0, 2)
    assert [call for call in learner.calls if call[0] in ("train", "aggregate")] == [
        ("train", 1, (1, 2)),
        ("aggregate", (2,)),
    ]
    assert local.ids == (5, 7)
    assert local.scalars == {"loss": (1.0, 2.0)}
    assert stage.expected((2, 5)).ids == (2, 5)
    assert stage.facts.phase == "train"


def test_scores_of_devices_are_those_of_ids() -> None:
    scores = DeviceScores((0, 2), {"accuracy": (0.1, 0.3)})
    _, outer = numbered(evaluation=Evaluation(0.5, 1.0, devices=scores))
    stage = next(iter(outer.session(SessionStart(1, (2, 7), 3))))
    evaluation = stage.evaluate((2, 7))
    assert evaluation.devices == DeviceScores((2, 7), {"accuracy": (0.1, 0.3)})
    assert (evaluation.accuracy, evaluation.loss) == (0.5, 1.0)


def test_tiers_are_those_of_the_federations_devices() -> None:
    learner, outer = numbered()
    list(outer.session(SessionStart(1, (2, 7), 3, overlapping=Staleness(tiers=(9, 9, 0, 9, 9, 1, 9, 2)))))
    (start,) = learner.started
    assert start.overlapping.tiers == (0, 1, 2)


def test_an_open_session_goes_on_behind_numbers() -> None:
    learner, outer = numbered()
    list(outer.session(SessionStart(1, (2, 7), 3)))
    learner.calls.clear()
    next(iter(outer.stages())).aggregate((5,))
    assert ("aggregate", (1,)) in learner.calls


def test_a_device_of_another_federation_is_no_number() -> None:
    _, outer = numbered()
    with pytest.raises(KeyError):
        list(outer.session(SessionStart(1, (3,), 3)))
