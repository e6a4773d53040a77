"""Numbers that are not finite, refused where samples come in: one of them leaves nothing of a model."""

import numpy as np

from edgefl.errors import EdgeflError

AT_ONCE = 65_536  # samples looked at together


def require_finite(samples: np.ndarray, what: str) -> None:
    """Refuse samples [n, ...] with a number that is none, or is infinite.

    Args:
        what: they are, e.g. "x_train of a.npz".

    Raises:
        EdgeflError: names the first such sample, counted from 0, and the remedy.
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
                f"sample {begin + row} of {what} (counted from 0) has {value}, which is no finite number: fill gaps"
                " in first, or leave such samples out"
            )
