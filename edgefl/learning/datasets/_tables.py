"""Number labels, split off test samples, and scale inputs, for data sets from a user's own files."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import Field

from edgefl.errors import EdgeflError
from edgefl.learning.datasets import Data, Split
from edgefl.learning.datasets._images import moments
from edgefl.learning.finite import require_finite
from edgefl.rng import Streams

Scale = Literal["columns", "all", "none"]
SCALE: Any = Field(
    "columns",
    description="how inputs are scaled by the mean and standard deviation of the training samples. "
    "columns: each column of a table, or each channel of images [n, channels, height, width]; all: all "
    "values together; none: not at all, e.g. for token ids",
)
Size = tuple[Annotated[int, Field(ge=1, le=1024)], Annotated[int, Field(ge=1, le=1024)]]
SIZE: Any = Field((32, 32), description="[height, width] in pixels to which images are resized")
FILL = "fill the gap, or remove the sample"
AT_ONCE = 65_536  # number of samples summed at a time


def require_file(path: Path, remedy: str) -> None:
    """Check that a file or folder exists.

    Raises:
        EdgeflError: the path does not exist; the error names the place and the remedy.
    """
    if not path.exists():
        here = "" if path.is_absolute() else f" (looked in the scenario's folder and in {Path.cwd()})"
        raise EdgeflError(f"{path} does not exist{here}: {remedy}")


def labelled(values: Sequence[str]) -> tuple[np.ndarray, tuple[str, ...]]:
    """Convert labels to numbers from 0 to C-1, integers by value and words in alphabetical order.

    Raises:
        EdgeflError: the values are measurements, not labels.
    """
    names = sorted(set(values))
    if all(name.removeprefix("-").isdecimal() for name in names):
        names.sort(key=int)
    elif _are_numbers(names):
        regression = "for a regression, set targets: numbers (csv), or store y as float32 (npz)"
        if all(float(name).is_integer() for name in names):
            raise EdgeflError(
                f"the labels are written with decimals or exponents, such as {names[-1]}: for classes, write whole"
                f" numbers, such as {float(names[-1]):.0f}; {regression}"
            )
        fraction = next(name for name in names if not float(name).is_integer())
        raise EdgeflError(
            f"the labels are numbers with fractions, such as {fraction}, not classes: {regression}"
        )
    number = {name: index for index, name in enumerate(names)}
    return np.array([number[value] for value in values], np.int64), tuple(names)


def require_filled(words: Sequence[str], what: str) -> None:
    """Check that each label or group of a column is a text that is not empty.

    Args:
        what: name of the column in messages.

    Raises:
        EdgeflError: a text is empty; the error names the sample and the remedy.
    """
    for number, word in enumerate(words, start=1):
        if not word.strip():
            raise EdgeflError(f"{what} is empty in sample {number} (counted from 1); {FILL}")


def grouped(words: Sequence[str]) -> tuple[np.ndarray | None, tuple[str, ...]]:
    """Convert samples' groups to numbers in alphabetical order; return (None, ()) without groups."""
    names = tuple(sorted(set(words)))
    number = {name: index for index, name in enumerate(names)}
    return (np.array([number[word] for word in words], np.int64) if words else None), names


def divided(
    inputs: Sequence[tuple[str, np.ndarray]],
    y: np.ndarray,
    groups: np.ndarray | None,
    share: float,
    stream: str,
) -> tuple[Split, Split]:
    """Make training and test samples from two inputs, or from one input by splitting off a share for testing.

    Args:
        inputs: name of each input in messages, and its samples. y, groups: targets and groups of the samples of all
        inputs, concatenated.

    Raises:
        EdgeflError: a value is not finite; the error names the sample's index before the split.
    """
    splits, begin = [], 0
    for what, x in inputs:
        rows = slice(begin, begin + len(x))
        require_finite(x, what)
        require_finite(y[rows], f"the targets of {what}")
        splits.append(Split(x, y[rows], None if groups is None else groups[rows]))
        begin += len(x)
    return (splits[0], splits[1]) if len(splits) == 2 else split_off(splits[0], share, stream)


def split_off(split: Split, share: float, stream: str) -> tuple[Split, Split]:
    """Split a random share of samples off for testing, the same in all runs; return (train, test).

    Raises:
        EdgeflError: no training or no test sample would be left.
    """
    count = len(split.y)
    tests = round(share * count)
    if not 0 < tests < count:
        raise EdgeflError(
            f"a test_share of {share:g} of {count} samples leaves none to train on or none to test on: choose another"
            " share, or more samples"
        )
    order = Streams(0)("test samples", stream).permutation(count)
    return split.part(np.sort(order[tests:])), split.part(np.sort(order[:tests]))


def complete(
    train: Split,
    test: Split,
    names: tuple[str, ...],
    groups: tuple[str, ...] = (),
    scale: Scale = "columns",
    trained: np.ndarray | None = None,
) -> Data:
    """Make a data set with inputs scaled by mean and standard deviation of the training inputs.

    A model has outputs for the labels of the training samples only; test samples with other labels are left out.

    Args:
        trained: labels of all training samples, if `train` has only some of these samples; None: `train` has all.

    Raises:
        EdgeflError: there are no samples, or fewer than two classes.
    """
    if not len(train.y) or not len(test.y):
        raise EdgeflError("there are no training samples, or no test samples")
    numbers, left_out = known_labels(train.y if trained is None else trained, test.y, names)
    if left_out:
        train = replace(train, y=numbers[train.y])
        test = replace(test, y=numbers[test.y]).part(numbers[test.y] >= 0)
        names = tuple(name for name in names if name not in left_out)
    if len(names) < 2 and np.issubdtype(train.y.dtype, np.integer):
        raise EdgeflError(f"there is only one class, {names[0]!r}: there is nothing to learn")
    return Data(train, test, len(names), *scaling(train.x, scale), names, groups, left_out=left_out)


def known_labels(
    train: np.ndarray, test: np.ndarray, names: Sequence[str]
) -> tuple[np.ndarray, dict[str, int]]:
    """Number the labels again, without labels that only test samples have.

    If all test samples have unknown labels, all labels stay, and the run is refused before it begins.

    Args:
        train, test: labels of the training and test samples, or values of a regression, [n].

    Returns:
        The new number of each label, [C], which is -1 if the label is left out; and the names of labels that are left
        out, with their numbers of test samples.
    """
    numbers = np.arange(len(names))
    unknown = np.setdiff1d(test, train) if np.issubdtype(test.dtype, np.integer) else numbers[:0]
    if np.isin(test, unknown).all():
        return numbers, {}
    known = np.isin(numbers, unknown, invert=True)
    counts = np.bincount(test, minlength=len(names)) if len(unknown) else numbers
    return np.where(known, known.cumsum() - 1, -1), {names[one]: int(counts[one]) for one in unknown}


def scaling(x: np.ndarray, scale: Scale) -> tuple[np.ndarray, np.ndarray]:
    """Return the float32 mean and standard deviation used to scale samples [n, ...]; both broadcast to one sample.

    A column, or channel, that is constant over all samples gets standard deviation 1, so its scaled values are 0.

    Args:
        scale: `columns`: one value per column [features] of a table [n, features], or per channel [channels, 1, 1] of
            images [n, channels, height, width]; other samples, such as grey images [n, height, width], get scalars,
            as with `all`. `all`: scalars []. `none`: 0 and 1.
    """
    if scale == "none":
        return np.array(0, np.float32), np.array(1, np.float32)
    by_column = scale == "columns"
    if x.dtype == np.uint8 and (x.ndim == 3 or (x.ndim == 4 and by_column)):
        mean, std = moments(x)
        return mean, np.where(std > 0, std, np.float32(1))
    axes = {2: (0,), 4: (0, 2, 3)}.get(x.ndim) if by_column else None
    axes = axes or tuple(range(x.ndim))
    parts = [x[begin : begin + AT_ONCE] for begin in range(0, len(x), AT_ONCE)]
    count = np.prod([x.shape[axis] for axis in axes])

    def sums(powers: Sequence[np.ndarray]) -> np.ndarray:
        return np.sum([part.sum(axes, dtype=np.float64, keepdims=True) for part in powers], axis=0) / count

    mean = sums(parts)
    std = np.sqrt(sums([np.square(part - mean) for part in parts]))
    with np.errstate(divide="ignore", over="ignore"):
        varies = (x.max(axes, keepdims=True) > x.min(axes, keepdims=True)) & np.isfinite(
            np.float32(1) / std.astype(np.float32)
        )
    std = np.where(varies, std, 1)
    shape = () if len(axes) == x.ndim else mean.shape[1:]
    return mean.astype(np.float32).reshape(shape), std.astype(np.float32).reshape(shape)


def _are_numbers(names: Sequence[str]) -> bool:
    try:
        return bool([float(name) for name in names])
    except ValueError:
        return False
