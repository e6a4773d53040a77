"""Draw a round's mini-batches on the CPU, from each device's own random stream."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from edgefl.learning.memory import Need, require


@dataclass(frozen=True)
class Batches:
    """The mini-batches of K devices in one round.

    rows: sample indices [K, steps, B]; 0 for padding.
    weights: weights [K, steps, B] that sum to one per batch; 0 for padding.
    sizes: number of samples in each batch [K, steps], which precede the padding; 0 after a device's last step.
    steps: local iterations of each device [K]; 0 for a device without data. Early stopping may end training earlier.
    seeds: seed of each device's dropout masks in the round [K].
    per_epoch: iterations of one pass over a device's samples [K].
    samples: for each device, indices of the samples from which its batches are drawn.
    validation: for each device, samples held out for early stopping; empty without early stopping.
    views: view of each sample [K, steps, B], or None without augmentation.
    """

    rows: np.ndarray
    weights: np.ndarray
    sizes: np.ndarray
    steps: np.ndarray
    seeds: np.ndarray
    per_epoch: np.ndarray
    samples: Sequence[np.ndarray]
    validation: Sequence[np.ndarray] = ()
    views: np.ndarray | None = None

    def processed(self, steps: np.ndarray) -> np.ndarray:
        """Return the number of samples [K], without padding, in the first `steps` [K] batches of each device."""
        counted = np.concatenate([np.zeros((len(self.sizes), 1), np.int64), self.sizes.cumsum(1)], axis=1)
        return counted[np.arange(len(steps)), steps]


def draw_batches(
    samples: Sequence[np.ndarray],
    steps: Sequence[int],
    batch: int,
    generators: Iterable[np.random.Generator],
    smallest: int = 1,
    validation: Sequence[np.ndarray] = (),
) -> Batches:
    """Draw mini-batches without replacement, as a PyTorch DataLoader without drop_last does.

    Each epoch shuffles the device's samples and cuts them into batches of B; the last batch of an epoch may be
    shorter. A device with fewer than B samples uses all of them in every step; a device without samples takes no
    steps.

    Args:
        samples: per device, indices of its training samples.
        steps: per device, number of local iterations e.
        batch: batch size B.
        generators: per device, the random stream for this round; each stream is used before the next is taken.
        smallest: smallest size of a batch: 2 for batch norm, which cannot train on one sample. A smaller last batch
            of an epoch is dropped; a device with a single sample uses it twice.
        validation: held-out samples, passed on as in `Batches`.
    """
    widest = max(smallest, min(batch, max(len(indices) for indices in samples)))
    count, longest = len(samples), max(1, max(steps))
    # bytes of a sample's index, its mask, and its weight in double and in single precision
    require(
        [
            Need(
                ("learning", "local", "steps"),
                (8 + 1 + 8 + 4) * count * longest * widest,
                "a round's batches",
            )
        ]
    )
    rows = np.zeros((count, longest, widest), dtype=np.int64)
    sizes = np.zeros((count, longest), dtype=np.int64)
    seeds = np.zeros(count, dtype=np.int64)
    done = [int(wanted) if len(indices) else 0 for indices, wanted in zip(samples, steps, strict=True)]
    for k, (indices, end, rng) in enumerate(zip(samples, done, generators, strict=True)):
        step = 0
        while step < end:
            epoch = rng.permutation(indices)
            if len(epoch) < smallest:
                epoch = np.resize(epoch, smallest)
            full, rest = divmod(len(epoch), batch)
            full = min(full, end - step)
            if full:
                rows[k, step : step + full, :batch] = epoch[: full * batch].reshape(full, batch)
                sizes[k, step : step + full] = batch
                step += full
            if rest >= smallest and step < end:
                rows[k, step, :rest] = epoch[-rest:]
                sizes[k, step] = rest
                step += 1
        seeds[k] = rng.integers(2**63)
    present = np.arange(widest) < sizes[:, :, None]
    weights = present / np.maximum(sizes, 1)[:, :, None]
    per_epoch = np.array([steps_per_epoch(len(indices), batch, smallest) for indices in samples])
    return Batches(
        rows, weights.astype(np.float32), sizes, np.array(done), seeds, per_epoch, samples, validation
    )


def steps_per_epoch(samples: int, batch: int, smallest: int = 1) -> int:
    """Return the number of mini-batches per epoch into which `draw_batches` cuts a device's samples."""
    full, rest = divmod(samples, batch)
    return full + (rest >= smallest or (not full and rest > 0))


def samples_in(steps: int, samples: int, batch: int, smallest: int = 1) -> int:
    """Return the number of samples in the first `steps` mini-batches that `draw_batches` draws for a device."""
    if not samples:
        return 0
    full, rest = divmod(max(samples, smallest), batch)
    of_epoch = full * batch + (rest if rest >= smallest else 0)
    epochs, further = divmod(steps, steps_per_epoch(samples, batch, smallest))
    return epochs * of_epoch + min(further * batch, of_epoch)


def kept_apart(samples: int, share: float) -> int:
    """Return how many of a device's samples `keep_apart` holds out."""
    return min(max(1, round(share * samples)), samples - 1) if share and samples else 0


def keep_apart(
    samples: np.ndarray, share: float, generator: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Split a device's samples at random into training and held-out samples, each in the original order.

    Args:
        samples: indices of the device's samples [n].
        share: share to hold out, in [0, 1); of two or more samples, at least one, but never all, are held out.
        generator: random numbers; equal generators give equal splits.
    """
    count = kept_apart(len(samples), share)
    apart = np.zeros(len(samples), dtype=bool)
    apart[generator.permutation(len(samples))[:count]] = True
    return samples[~apart], samples[apart]
