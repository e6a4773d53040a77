"""What does not go together with codecs: refused when a scenario is read, with the remedy."""

from edgefl.config import registry
from edgefl.engine.air.radio_settings import RadioSettings
from edgefl.errors import EdgeflError
from edgefl.learning.codecs import Sizes, fed_back
from edgefl.learning.settings import LearningSettings


def check(radio: RadioSettings, learning: LearningSettings | None) -> None:
    """Refuse a codec for something that does not travel, or not to one device, and one whose errors know no bound.

    Raises:
        EdgeflError: names the key and the remedy.
    """
    if learning is None:
        return
    algorithm = learning.algorithm
    name = registry.name_of("algorithms", algorithm)
    for key in ("uplink_codec", "downlink_codec"):
        if getattr(learning, key) is not None and not algorithm.vectors_up:
            raise EdgeflError(
                f"with {name} nothing travels that could be coded: leave it out", ("learning", key)
            )
    for one in fed_back(
        learning.uplink_codec, learning.downlink_codec, differences=algorithm.sends_differences
    ):
        if one.is_silent:
            one.check(Sizes(()))
    if learning.downlink_codec is None:
        return
    if algorithm.chooses_model:
        raise EdgeflError(
            f"with {name} a device receives several models, and a codec knows one that it had before: leave it out",
            ("learning", "downlink_codec"),
        )
    if radio.downlink == "broadcast":
        raise EdgeflError(
            "each device receives a change of its own, and a broadcast sends one thing to all: set downlink: unicast",
            ("radio", "downlink"),
        )
