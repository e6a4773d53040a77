"""Test that the codec contract detects codecs that understate their errors, or do not state them."""

import pytest

from edgefl.learning.codecs import Codec, Contraction, Sizes, Unbiased
from edgefl.learning.codecs.qsgd import Qsgd
from edgefl.learning.codecs.rand_k import RandK
from edgefl.learning.codecs.top_k import TopK
from edgefl.testing import check
from edgefl.testing.conformance import ContractError


class Unstated(TopK):
    """A codec that does not state its error."""

    distortion = Codec.distortion


class TooSure(Qsgd):
    """A codec that states a tenth of its omega."""

    def distortion(self, sizes: Sizes) -> Unbiased:
        return Unbiased(super().distortion(sizes).omega / 10)


class Biased(TopK):
    """A biased codec that claims to be unbiased."""

    def distortion(self, sizes: Sizes) -> Unbiased:  # type: ignore[override]
        return Unbiased(9.0)


class TooNear(RandK):
    """A codec that claims to send twice what it sends."""

    def distortion(self, sizes: Sizes) -> Contraction:
        return Contraction(2 * self.share)


class NoNumber(TopK):
    """A codec that states a delta of 0."""

    def distortion(self, sizes: Sizes) -> Contraction:
        return Contraction(0.0)


@pytest.mark.parametrize(
    ("codec", "feedback", "words"),
    [
        (Unstated, False, "is missing"),
        (Unstated, True, "states no bound"),
        (TooSure, False, "the mean squared error is"),
        (TooSure, True, "the mean squared error is"),
        (Biased, False, "mean decoded change differs from the change"),
        (TooNear, True, "the mean squared error is"),
        (NoNumber, True, "delta must be above 0"),
    ],
)
def test_a_codec_that_states_less_than_its_error_is_told(
    codec: type[Codec], feedback: bool, words: str
) -> None:
    with pytest.raises(ContractError, match=words):
        check(codec, error_feedback=feedback)
