"""Refuse samples that are not finite, since a single such sample ruins a model."""

import numpy as np

from edgefl.errors import EdgeflError

AT_ONCE = 65_536  # number of samples checked at a time


def require_finite(samples: np.ndarray, what: str) -> None:
    """Check that all values in samples [n, ...] are finite.

    Args:
        what: name of the samples, e.g. "x_train of a.npz".

    Raises:
        EdgeflError: a number is NaN or infinite; the error names the first such sample (from 0), and the remedy.
    """
    if samples.dtype.kind != "f":
        return
    for begin in range(0, len(samples), AT_ONCE):
        some = samples[begin : begin + AT_ONCE]
        finite = np.isfinite(some).reshape(len(some), -1).all(1)
        if not finite.all():
            row = int(finite.argmin())
            value = some[row][~np.isfinite(some[row])].flat[0]
            raise EdgeflError(
                f"{what}: sample {begin + row} (counted from 0) has {value}, which is not a finite number: fill gaps"
                " first, or leave such samples out"
            )
