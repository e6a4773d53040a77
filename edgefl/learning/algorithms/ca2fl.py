"""Calibrate updates with each device's last update."""

from typing import ClassVar

from pydantic import Field

from edgefl.learning.algorithms import Algorithm, Members, Sent, ServerState, Trained, Updates, Vectors
from edgefl.learning.tensors import Tensor


class Ca2fl(Algorithm):
    """Move the model by the mean of all devices' last changes, replaced by new changes where updates have arrived.

    Wang, Cao, Wu, Chen and Chen, Tackling the Data Heterogeneity in Asynchronous Federated Learning with Cached
    Update Calibration, ICLR 2024: h_k is the last change of device k, and h the mean of all h_k; with S the set of
    devices whose updates have arrived, and Delta_k their changes, w+ = w + server_lr (h + mean_S (Delta_k - h_k)),
    h_k+ = Delta_k for k in S.

    Thus even a device whose updates seldom arrive counts in every model. Means are weighted by data size. The paper's
    server keeps h_k; here the device keeps h_k and sends Delta_k - h_k, which leads to the same numbers and bits. An
    update that is lost in the uplink is missing from h_k at both ends, so the next difference includes it. h_k is 0
    for a device that is new in the session, and for all devices when a session begins, because earlier changes belong
    to a model other than the opening model.

    With all devices in every round and server_lr 1, the algorithm is FedAvg. Updates must count in full, however
    stale: `rounds.server` must have `staleness: constant`, and no `server_lr`, `divisor` or `base`.
    """

    device_vectors: ClassVar[tuple[str, ...]] = ("cached",)
    as_sent: ClassVar = True
    sends_differences: ClassVar = True

    server_lr: float = Field(1.0, gt=0, le=1e9, description="eta: step size of the server")

    def init_state(self, start: Tensor, last: ServerState, members: Members) -> ServerState:
        members.forget("cached")
        return {"cached": start.new_zeros(start.shape)}

    def join(self, state: ServerState, members: Members, newcomers: Members) -> ServerState:
        newcomers.forget("cached")
        return {"cached": members.mean("cached")}

    def upload(self, trained: Trained, state: ServerState, own: Vectors) -> Sent:
        return Sent(trained.local - own["cached"])

    def keep(self, trained: Trained, sent: Tensor, state: ServerState, own: Vectors) -> Vectors:
        return {"cached": own["cached"].add_(sent).sub_(trained.start)}

    def aggregate(self, model: Tensor, updates: Updates, state: ServerState) -> tuple[Tensor, ServerState]:
        change = updates.mean_change()
        cached = state["cached"]
        return model + self.server_lr * (cached + change), {"cached": cached + updates.coverage * change}
