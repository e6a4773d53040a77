"""Derive training: softmax regression by full-batch gradient steps in double precision, and its loss."""

from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
from safetensors.numpy import load_file, save_file

FEATURES, CLASSES = 3, 2
MOST_SAMPLES = 30  # per device
LARGEST = 4.0  # limit of inputs, parameters and losses, which bounds rounding
BITS = 32 * CLASSES * (FEATURES + 1)  # of a model
HALF_DIGIT = 2.0**-24  # relative rounding error of single precision


@dataclass(frozen=True)
class Samples:
    """Inputs [n, features] and labels [n]."""

    x: np.ndarray
    y: np.ndarray

    def probabilities(self, model: np.ndarray) -> np.ndarray:
        """Return a model's probabilities [n, classes]; the last column of [classes, features + 1] is the bias."""
        logits = self.x @ model[:, :-1].T + model[:, -1]
        powers = np.exp(logits - logits.max(axis=1, keepdims=True))
        return powers / powers.sum(axis=1, keepdims=True)

    def loss(self, model: np.ndarray) -> float:
        """Return the mean cross-entropy."""
        return float(-np.log(self.probabilities(model)[np.arange(len(self.y)), self.y]).mean())

    def trained(self, model: np.ndarray, steps: int, lr: float) -> np.ndarray:
        """Return the model after `steps` steps of gradient descent on all samples."""
        with_one = np.column_stack([self.x, np.ones(len(self.x))])
        for _ in range(steps):
            wrong = self.probabilities(model)
            wrong[np.arange(len(self.y)), self.y] -= 1
            model = model - lr * wrong.T @ with_one / len(self.y)
        return model


@dataclass(frozen=True)
class Learning:
    """Samples of each device, largest first, and test samples; the initial model; parameters of local training."""

    devices: list[Samples]
    test: Samples
    first: np.ndarray
    steps: int
    lr: float
    flops: int = 50_000  # per sample

    @property
    def sizes(self) -> list[int]:
        """Number of samples of each device."""
        return [len(one.y) for one in self.devices]

    def trained(self, device: int, model: np.ndarray) -> np.ndarray:
        """Return the model after a device's training."""
        return self.devices[device].trained(model, self.steps, self.lr)

    def compute_s(self, device: int, clock_hz: int) -> float:
        """Return a device's computing time in s, at 8 FLOPs per cycle."""
        return self.steps * self.sizes[device] * self.flops / (8 * clock_hz)

    def tolerance(self, models: int) -> float:
        """Return the tolerance for single precision after a number of models, since each step rounds its sums."""
        sums = self.steps * (MOST_SAMPLES + FEATURES + CLASSES) + len(self.devices)
        return models * sums * HALF_DIGIT * LARGEST

    def section(self, folder: Path) -> dict[str, Any]:
        """Write data and the initial model; return the section `learning` of a scenario."""
        x, y = (
            np.concatenate([one.x for one in self.devices]),
            np.concatenate([one.y for one in self.devices]),
        )
        groups = np.repeat(np.arange(len(self.devices)), self.sizes)
        np.savez(
            folder / "data.npz",
            x_train=x,
            y_train=y,
            groups_train=groups,
            x_test=self.test.x,
            y_test=self.test.y,
            groups_test=np.zeros(len(self.test.y), int),
        )
        parameters = {"1.weight": self.first[:, :-1], "1.bias": self.first[:, -1]}
        save_file(
            {name: np.ascontiguousarray(of, np.float32) for name, of in parameters.items()},
            folder / "first.safetensors",
        )
        return {
            "dataset": {"name": "npz", "path": str(folder / "data.npz"), "scale": "none"},
            "partition": {"name": "natural", "choice": "largest"},
            "model": "logistic",
            "initial": {"path": str(folder / "first.safetensors")},
            "local": {
                "steps": self.steps,
                "batch": MOST_SAMPLES,
                "momentum": 0,
                "lr": self.lr,
                "lr_schedule": "constant",
            },
            "cost": {"booked": "processed", "flops_per_sample": self.flops},
        }


def drawn(rng: Random, devices: int) -> Learning:
    """Draw data, an initial model and local training, with numbers that single precision represents exactly."""
    draw = np.random.default_rng(rng.randrange(2**32))
    sizes = sorted(rng.sample(range(2 * CLASSES, MOST_SAMPLES), devices), reverse=True)
    every = [_samples(draw, size) for size in (*sizes, 40)]
    first = (draw.integers(-8, 9, (CLASSES, FEATURES + 1)) / 8).astype(float)
    return Learning(every[:-1], every[-1], first, rng.randint(1, 3), rng.choice((0.125, 0.5)))


def _samples(draw: np.random.Generator, many: int) -> Samples:
    labels = np.arange(many) % CLASSES  # each device has all classes, because tests use devices' labels
    return Samples(draw.integers(-16, 17, (many, FEATURES)) / 16 + labels[:, None] / 4, labels)


def model_in(out: Path, cell: int) -> np.ndarray:
    """Return a cell's final model."""
    tensors = load_file(out / "models" / f"cell{cell}.safetensors")
    return np.column_stack([tensors["1.weight"], tensors["1.bias"]])
