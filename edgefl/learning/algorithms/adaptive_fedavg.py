"""FedAvg with a local learning rate that adapts to the global model's movement."""

from typing import ClassVar

from edgefl.learning.algorithms import Members, ServerState, Updates
from edgefl.learning.algorithms.fedavg import FedAvg
from edgefl.learning.tensors import Tensor, in_double


class AdaptiveFedAvg(FedAvg):
    """Lower the devices' learning rate while the global model converges, and raise it when the model moves again.

    Canonaco et al., Adaptive Federated Learning in Presence of Concept Drift, IJCNN 2021. After round t, with
    bias-corrected moving averages (M^ = M / (1 - beta1^t), and so on):
    V = beta2 V + (1 - beta2) mean_j (w_j - M^_j)^2, with the previous M^; then M = beta1 M + (1 - beta1) w; R = beta3
    R + (1 - beta3) V^ / (previous V^), where the first ratio is 1. The next round has the rate learning.local.lr x
    min(1, R^).

    We had no access to the paper; formulas and betas come from two public implementations, which differ only in an
    additional decay of the rate. This decay is left out, since `learning.local.lr_schedule` offers decay for all
    algorithms. Both implementations start from M^ = 0, so that the first V is the size of the model; here M^ starts
    at the opening model. If the model has not moved, the ratio 0/0 counts as 1. Each session resets the state.

    With beta3 = 1 the rate stays constant: the algorithm is then FedAvg.
    """

    uses: ClassVar[str] = "mean"

    beta1: ClassVar[float] = 0.5  # decay rate of the mean model
    beta2: ClassVar[float] = 0.5  # decay rate of the variance around the mean
    beta3: ClassVar[float] = 0.5  # decay rate of the ratio of variances; with 1 the learning rate is constant

    def init_state(self, start: Tensor, last: ServerState, members: Members) -> ServerState:
        zero, one = (in_double(start.new_full((), value)) for value in (0.0, 1.0))
        return {
            "rounds": zero,
            "mean": start.new_zeros(start.shape),
            "centre": start,
            "variance": zero,
            "ratio": zero,
            "factor": one,
        }

    def learning_rate(self, lr: float, state: ServerState) -> float:
        return lr * float(state["factor"])

    def aggregate(self, model: Tensor, updates: Updates, state: ServerState) -> tuple[Tensor, ServerState]:
        after = updates.mean()
        rounds = state["rounds"] + 1
        mean = self.beta1 * state["mean"] + (1 - self.beta1) * after
        spread = in_double((after - state["centre"]).square().mean())
        variance = self.beta2 * state["variance"] + (1 - self.beta2) * spread
        last, now = (
            v / (1 - self.beta2**t) for v, t in ((state["variance"], rounds - 1), (variance, rounds))
        )
        newest = now / last if float(rounds) > 1 and float(last) > 0 else now.new_ones(now.shape)
        ratio = self.beta3 * state["ratio"] + (1 - self.beta3) * newest
        corrected = ratio / (1 - self.beta3**rounds) if self.beta3 < 1 else ratio.new_ones(ratio.shape)
        return after, {
            "rounds": rounds,
            "mean": mean,
            "centre": mean / (1 - self.beta1**rounds).to(mean.dtype),
            "variance": variance,
            "ratio": ratio,
            "factor": corrected.clamp_max(1.0),
        }
