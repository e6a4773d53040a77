"""End rounds at a deadline, and aggregate late updates in the next round."""

from pydantic import Field

from edgefl.engine.servers import ServerState, WeighingServer


class SemiSynchronous(WeighingServer):
    """Collect updates for `every_s`, then make a model from them; late updates go into the next model.

    Devices start together, right after a model is made. A round also ends once no device is working any more; if no
    update arrives in time, it ends with the first update that arrives later. In a synchronous round with a deadline,
    late updates are lost, so slow devices never contribute; here they are aggregated as stale updates.
    """

    every_s: float = Field(
        gt=0, le=1e9, description="time for which updates are collected after a model; server_s is added"
    )

    def room(self, state: ServerState) -> int:
        opens = state.now_s == state.since_s or not (state.working or state.arrived)
        return super().room(state) if opens else 0

    def ready(self, state: ServerState) -> int:
        due = state.now_s >= self.looks_s(state.since_s) or not state.working
        return state.arrived if due else 0

    def looks_s(self, since_s: float) -> float:
        return since_s + self.every_s
