"""The synchronous server, which runs rounds one after the other."""

from collections.abc import Sequence

from pydantic import Field

from edgefl.engine.servers import ServerPolicy, ServerState


class Synchronous(ServerPolicy):
    """All participants start from the same model, and the next round begins once the new model is made.

    McMahan et al., AISTATS 2017. `rounds.deadline_s`, `over_selection` and `min_updates` set how long a round waits;
    devices that are late are cut off, and their updates are lost.

    The mean of the updates that arrive is biased towards devices with good links. `unbiased` weights each update by 1
    / (1 - q) if packet errors lose it with probability q, and by its share of the data of all participants. The
    expectation of the new model is then the mean of all participants' models (Horvitz and Thompson, 1952), with a
    larger variance. An update that is lost for any other reason counts as an unchanged model, so `over_selection`,
    which cuts off devices in every round, is an error with `unbiased`. So are FedDyn, FedDC, CA2FL, HypCluster and
    FedDrift, which need whole updates.
    """

    unbiased: bool = Field(
        False,
        description="weight updates by 1 / (1 - q), with q the probability that packet errors lose them"
        " (radio.link.uplink_waterfall_db, uplink_threshold_db)",
    )

    def weights(self, arrives: Sequence[float]) -> Sequence[float] | None:
        return tuple(1.0 / one for one in arrives) if self.unbiased else None

    @property
    def learning(self) -> None:
        return None

    def room(self, state: ServerState) -> int:
        return 0 if state.working or state.arrived or state.lost else state.places

    def ready(self, state: ServerState) -> int:
        return 0 if state.working else state.arrived
