"""Aggregation against hand-computed values."""

import torch

from edgefl.learning.algorithms.fedavg import FedAvg
from edgefl.learning.algorithms.fedprox import FedProx

START = torch.tensor([10.0, 10.0])
ROWS = torch.tensor([[1.0, 2.0], [3.0, 6.0], [5.0, 0.0]])
WEIGHTS = torch.tensor([0.5, 0.25, 0.25])


def test_fedavg_is_the_weighted_mean() -> None:
    # 0.5 (1, 2) + 0.25 (3, 6) + 0.25 (5, 0) = (2.5, 2.5)
    model, state = FedAvg().aggregate(START, ROWS, WEIGHTS, None)
    assert model.tolist() == [2.5, 2.5]
    assert state is None


def test_fedprox_pulls_to_the_start() -> None:
    grads, local = torch.tensor([[1.0, -1.0]]), torch.tensor([[12.0, 9.0]])
    # g + mu (w - w_start) = (1, -1) + 2 (2, -1)
    assert FedProx(mu=2.0).correct(grads.clone(), local, START, None).tolist() == [[5.0, -3.0]]
    assert FedProx(mu=0.0).correct(grads.clone(), local, START, None).tolist() == grads.tolist()
