"""Rounds that end at a deadline, and late updates that count in the next one."""

from pydantic import Field

from edgefl.engine.servers import ServerState, WeighingServer


class SemiSynchronous(WeighingServer):
    """A model is made of what has arrived `period_s` after the last one; who is late goes on and counts later.

    Devices begin together, right after a model is made. A round also ends when nobody works any more; one in which
    nothing arrives in time, with the first update after that. In a synchronous round with a deadline late updates
    are lost, so that slow devices never contribute; here they are stale.
    """

    period_s: float = Field(gt=0, le=1e9, description="a model is made this long after the last one, s")

    def room(self, state: ServerState) -> int:
        opens = state.now_s == state.since_s or not (state.working or state.arrived)
        return super().room(state) if opens else 0

    def ready(self, state: ServerState) -> int:
        due = state.now_s >= self.looks_s(state.since_s) or not state.working
        return state.arrived if due else 0

    def looks_s(self, since_s: float) -> float:
        return since_s + self.period_s
