"""How far the minimiser of the global loss moves when devices come and go: the early version's Lemma 1.

Its constants belong to a problem, not to a run: smallest curvature, largest gradient, and what each client holds.
"""

import math
from collections.abc import Sequence

import numpy as np


def lemma1(
    *,
    strong_convexity: float,
    gradient_bound: float,
    types: Sequence[np.ndarray],
    types_after: Sequence[np.ndarray],
    samples: int,
    samples_after: int,
) -> float:
    """Bound the expected distance of the minimisers before and after a change of clients.

    Args:
        strong_convexity: mu of all local losses.
        gradient_bound: C, of the norm of a sample's gradient.
        types: of each client before, its distribution q over the universal data set [samples of it].
        types_after: of each client after.
        samples, samples_after: D, the samples of all clients before and after.

    Returns:
        The right side of (3). Its psi can be negative, and so can the sum: the paper takes its absolute value.

    Source: I, Lemma 1, (3) and (4).
    """
    before, after = np.asarray(types, float), np.asarray(types_after, float)

    def psi(one: np.ndarray, d_one: int, other: np.ndarray, d_other: int) -> np.ndarray:
        total = other.sum(axis=0)
        products = total**2 - (other**2).sum(axis=0)  # over ordered pairs i != j
        result: np.ndarray = one.sum(axis=0) / d_one - (products + total) / d_other
        return result

    least = np.minimum(psi(before, samples, after, samples_after), psi(after, samples_after, before, samples))
    noise = sum(math.sqrt(gradient_bound * math.pi / (12 * d)) for d in (samples, samples_after))
    return (noise + gradient_bound * abs(float(least.sum()))) / strong_convexity


def shift_of_minimisers(gradient_after: np.ndarray, strong_convexity: float) -> float:
    """Bound the distance of two minimisers by the new loss's gradient at the old one. Source: I (11)."""
    return float(np.linalg.norm(gradient_after)) / strong_convexity
