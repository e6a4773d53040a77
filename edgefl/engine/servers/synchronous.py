"""The synchronous server: rounds one after the other."""

from edgefl.engine.servers import ServerPolicy, ServerState


class Synchronous(ServerPolicy):
    """All participants start from the same model, and the next round begins when the last one's model is made.

    McMahan et al., AISTATS 2017. `rounds.deadline_s`, `over_selection` and `min_updates` set how long a round waits;
    devices that are late are cut off, and their updates are lost.
    """

    @property
    def learning(self) -> None:
        return None

    def room(self, state: ServerState) -> int:
        return 0 if state.working or state.arrived or state.lost else state.places

    def ready(self, state: ServerState) -> int:
        return 0 if state.working else state.arrived
