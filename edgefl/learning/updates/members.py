"""The devices of a session and of a round, as algorithms see them."""

from collections.abc import Callable, Mapping, Sequence, Set
from functools import cached_property

import numpy as np
import torch
from torch import Tensor

from edgefl.learning.algorithms import Algorithm
from edgefl.learning.chance import NO_CHANCE, Chance
from edgefl.learning.data.dealt_by_group import total
from edgefl.learning.local.handed import OWN, REMEMBERED, Handed
from edgefl.learning.updates.device_states import DeviceStates


class SessionMembers:
    """The devices of a session (id -> number of samples), weighted by their numbers of samples.

    Reading a vector not in `device_vectors` is an error: such a vector is never stored, and would always be 0.
    """

    def __init__(
        self, algorithm: Algorithm, devices: DeviceStates, samples: Mapping[int, int], like: Tensor
    ) -> None:
        self._vectors = Handed(algorithm, OWN, dict.fromkeys(algorithm.device_vectors, like))
        self._devices = devices
        self._samples = samples
        self._like = like

    @cached_property
    def _ids(self) -> list[int]:  # up to a million ids, so the list is made on demand
        return list(self._samples)

    @cached_property
    def _weights(self) -> np.ndarray:
        samples = np.array(list(self._samples.values()), dtype=np.float64)
        return samples / max(1, total(self._samples))

    def mean(self, name: str) -> Tensor:
        self._vectors.check(name)
        return self._devices.mean(name, self._ids, self._weights, self._like)

    def shift(self, name: str, by: Tensor) -> None:
        self._vectors.check(name)
        self._devices.shift(name, self._ids, by)

    def forget(self, name: str) -> None:
        self._vectors.check(name)
        self._devices.forget(name, self._ids)


class RoundReceivers:
    """The devices of a round; `tested` counts each device's samples in forward passes of `losses`.

    A name that is neither in `device_vectors` nor in `remembers` is an error, as in `SessionMembers`.
    """

    def __init__(
        self,
        algorithm: Algorithm,
        ids: Sequence[int],
        starting: Set[int],
        devices: DeviceStates,
        samples: Sequence[np.ndarray],
        losses: Callable[[Tensor, Sequence[np.ndarray]], Tensor],
        like: Tensor,
        rng: Chance = NO_CHANCE,
    ) -> None:
        self.ids, self.rng = ids, rng
        self._starting = starting
        self._vectors = Handed(algorithm, OWN, dict.fromkeys(algorithm.device_vectors, like))
        self._notes = Handed(algorithm, REMEMBERED, dict.fromkeys(algorithm.remembers, like))
        self._like = like
        self._devices = devices
        self._samples = samples
        self._losses = losses
        self.tested = np.zeros(len(ids), dtype=np.int64)

    @cached_property
    def starting(self) -> Tensor:
        return torch.tensor([id_ in self._starting for id_ in self.ids], device=self._devices.torch_device)

    def own(self, name: str, missing: Tensor) -> Tensor:
        self._vectors.check(name)
        return self._devices.rows(name, self.ids, missing)

    def remembered(self, name: str, missing: float) -> Tensor:
        self._notes.check(name)
        return self._devices.rows(name, self.ids, self._like.new_full((1,), missing)).squeeze(1)

    def losses(self, models: Tensor) -> Tensor:
        self.tested += len(models) * np.array([len(indices) for indices in self._samples], dtype=np.int64)
        return self._losses(models, self._samples)
