"""Every codec of the registry learns, each way, with and without feedback: a score after 100 rounds."""

import pytest

from tests.tools.codecs import Case, Trial, cases


@pytest.fixture(scope="module")
def digits() -> Trial:
    return Trial("digits")


def test_whole_models_learn(digits: Trial) -> None:
    assert digits.whole.loss < digits.whole.loss_before / 4
    assert digits.whole.accuracy > 85


@pytest.mark.parametrize("case", cases(), ids=str)
def test_every_codec_learns_each_way_with_and_without_feedback(case: Case, digits: Trial) -> None:
    """The loss falls; within three points of whole models end all but those that lose what they leave out."""
    assert digits.faults(case, digits.learned(**case.learning)) == []
