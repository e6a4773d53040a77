"""synthetic(alpha, beta): generated classification tasks that differ from device to device."""

from dataclasses import replace
from typing import Self

import numpy as np
from pydantic import Field, model_validator

from edgefl.learning.datasets import Data, Dataset, Split
from edgefl.rng import Streams

FEATURES, CLASSES = 60, 10
LABELS = tuple(str(label) for label in range(CLASSES))
SIZE_MEAN, SIZE_STD, SIZE_LEAST = 4.0, 2.0, 50  # parameters of the log-normal group sizes
AT_ONCE = 1024  # number of samples drawn at a time
TEST_SHARE = 10  # one in ten samples of each group is a test sample


class Synthetic(Dataset):
    """60 features, 10 classes; each group k has its own input distribution and true model.

    u_k ~ N(0, alpha), B_k ~ N(0, beta), v_kj ~ N(B_k, 1), x ~ N(v_k, diag(j^-1.2)), W_k and b_k ~ N(u_k, 1),
    y = argmax(W_k x + b_k). A group has 50 + floor(exp(N(4, 2))) samples, a tenth of them for testing. Each group is
    meant to be one device (`partition: natural`). Samples are [60] float32, not normalised.

    beta controls how much the groups' inputs differ. alpha should control how much the groups' models differ, but u_k
    shifts the logits of all classes equally, so no label depends on alpha; alpha is a key because papers report it.

    Source: Li et al., Federated Optimization in Heterogeneous Networks, MLSys 2020, section 5.1, as in its public
    code, where the second parameter of N is a standard deviation except for x, and each group has 50 extra samples.
    FLASH uses 30 groups, alpha = beta = 0.5. The samples depend on the data set's keys only, not on the run's seed.
    """

    groups: int = Field(30, ge=1, le=10_000_000, description="number of groups, one per device")
    alpha: float = Field(
        0.5, ge=0, le=1e3, description="spread of the models' means; has no effect on the labels"
    )
    beta: float = Field(0.5, ge=0, le=1e3, description="heterogeneity of the groups' inputs")
    seed: int = Field(0, ge=0, le=2**32 - 1, description="seed from which the data are generated")
    test_groups: int | None = Field(
        None,
        ge=1,
        le=100_000,
        description="number of groups whose test samples are used; training samples are then generated when their"
        " device takes part, for more groups than fit in memory; null: all groups are generated at the start",
    )

    @model_validator(mode="after")
    def _no_more_tests_than_groups(self) -> Self:
        if self.test_groups is not None and self.test_groups > self.groups:
            raise ValueError(f"test_groups {self.test_groups} exceeds the {self.groups} groups")
        return self

    def load(self) -> Data:
        if self.test_groups is not None:
            return self._on_demand(self.test_groups)
        drawn = [self.drawn(group) for group in range(self.groups)]
        train, test = (Split.joined([one.part(part(one)) for one in drawn]) for part in (_first, _last))
        return Data.unscaled(train, test, LABELS, tuple(str(group) for group in range(self.groups)))

    def _on_demand(self, tested: int) -> Data:
        groups, drawn = _Groups(self), map(self.drawn, range(tested))
        test = Split.joined([one.part(_last(one)) for one in drawn])
        return replace(Data.unscaled(groups.of(0), test, LABELS), by_group=groups)

    def drawn(self, group: int, *, tested: bool = True) -> Split:
        """Draw the samples of a group, with or without its test samples, which come last."""
        x, y = _draw(self.alpha, self.beta, Streams(self.seed)("synthetic", group), tested=tested)
        return Split(x, y, np.full(len(y), group))

    def least_bytes(self) -> int:
        if self.test_groups is not None:
            return 8 * self.groups
        # while groups are concatenated, memory holds each sample twice, with its label and group
        return 2 * self.groups * SIZE_LEAST * (FEATURES * 4 + 8 + 8)


class _Groups:
    """Training samples of a synthetic data set, drawn on demand by group; `load` draws all of them at once."""

    content = ""

    def __init__(self, dataset: Synthetic) -> None:
        self._dataset = dataset
        streams = Streams(dataset.seed).in_turn(("synthetic",), range(dataset.groups))
        sizes = np.fromiter((_size(rng) for rng in streams), np.int64, dataset.groups)
        self.sizes = sizes - sizes // TEST_SHARE

    def of(self, group: int) -> Split:
        return replace(self._dataset.drawn(group, tested=False), groups=None)


def _draw(
    alpha: float, beta: float, rng: np.random.Generator, *, tested: bool
) -> tuple[np.ndarray, np.ndarray]:
    """Draw the samples [n, 60] float32 and labels [n] int64 of one group, with or without its test samples."""
    size = _size(rng)
    size -= 0 if tested else size // TEST_SHARE
    model_mean, input_mean = rng.normal(0, alpha), rng.normal(0, beta)
    centre = rng.normal(input_mean, 1, FEATURES)
    weights, bias = rng.normal(model_mean, 1, (FEATURES, CLASSES)), rng.normal(model_mean, 1, CLASSES)
    deviation = np.sqrt(np.arange(1, FEATURES + 1) ** -1.2)
    x, y = np.empty((size, FEATURES), np.float32), np.empty(size, np.int64)
    for begin in range(0, size, AT_ONCE):  # float64 arrays of 700,000 samples would take 300 MB more
        some = rng.standard_normal((min(AT_ONCE, size - begin), FEATURES))
        some *= deviation
        some += centre
        x[begin : begin + AT_ONCE] = some
        # unlike @, einsum's sums do not depend on the number of BLAS threads; einsum is faster with samples last
        by_class = np.einsum("fs,fc->cs", np.ascontiguousarray(some.T), weights)
        by_class += bias[:, None]
        y[begin : begin + AT_ONCE] = by_class.argmax(0)
    return x, y


def _size(rng: np.random.Generator) -> int:
    """Draw a group's number of samples; this must be the first draw from the group's random stream."""
    return SIZE_LEAST + int(np.exp(rng.normal(SIZE_MEAN, SIZE_STD)))


def _last(drawn: Split) -> np.ndarray:
    """Return the mask of a group's test samples."""
    count = len(drawn.y)
    return np.arange(count) >= count - count // TEST_SHARE


def _first(drawn: Split) -> np.ndarray:
    return ~_last(drawn)
