"""Test scaled inputs of own data sets, by column or channel over training samples, and non-finite inputs."""

import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.datasets import load_breast_cancer, load_wine

import edgefl
from edgefl.learning.datasets import Data, Dataset, Split
from edgefl.learning.datasets._tables import scaling
from edgefl.learning.datasets.csv import Csv
from edgefl.learning.datasets.huggingface import HuggingFace
from edgefl.learning.datasets.npz import Npz
from edgefl.learning.federation.training_data import TrainingData
from edgefl.learning.settings import LearningSettings
from tests.refusals import refused_at
from tests.tables import sections
from tests.unit.learning.small_files import Hub

FLOAT32 = 2.0**-23  # relative error of a float64 sum that is rounded to float32 once
TABLE = np.random.default_rng(4).normal([0.0, 50.0, -3.0], [1.0, 1000.0, 1e-3], (90, 3)).astype(np.float32)
LABELS = np.arange(90) % 3


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_columns_of_a_table_have_moments_of_their_own() -> None:
    np.savez("a.npz", x_train=TABLE[:60], y_train=LABELS[:60], x_test=TABLE[60:] + 9, y_test=LABELS[60:])
    data = Npz(path="a.npz").load()
    wide = TABLE[:60].astype(np.float64)  # only training samples
    np.testing.assert_allclose(data.mean, wide.mean(0), rtol=FLOAT32)
    np.testing.assert_allclose(data.std, wide.std(0), rtol=FLOAT32)
    together = Npz(path="a.npz", scale="all").load()
    assert (together.mean.shape, together.std.shape) == ((), ())
    np.testing.assert_allclose([together.mean, together.std], [wide.mean(), wide.std()], rtol=FLOAT32)
    as_is = Npz(path="a.npz", scale="none").load()
    assert (float(as_is.mean), float(as_is.std)) == (0, 1)


@pytest.mark.parametrize("kind", [np.uint8, np.float32])
def test_channels_of_images_have_moments_of_their_own(kind: type) -> None:
    pixels = np.random.default_rng(1).integers(0, 256, (40, 3, 4, 5)) // np.array([1, 4, 60])[:, None, None]
    images = pixels.astype(kind)
    mean, std = scaling(images, "columns")
    assert mean.shape == std.shape == (3, 1, 1)
    np.testing.assert_allclose(mean.ravel(), pixels.mean((0, 2, 3)), rtol=FLOAT32)
    np.testing.assert_allclose(std.ravel(), pixels.std((0, 2, 3)), rtol=FLOAT32)
    for one, how in ((images[:, 0], "columns"), (images, "all")):  # grey images have one channel
        mean, std = scaling(one, how)
        assert mean.shape == std.shape == ()
        np.testing.assert_allclose([mean, std], [one.mean(dtype=float), one.std(dtype=float)], rtol=FLOAT32)


@pytest.mark.parametrize("value", [0.0, 0.1, 1e30, 1e-30, 1e-44])
def test_what_does_not_vary_becomes_zero_and_divides_nothing(value: float) -> None:
    x = np.stack([np.full(70, value), np.arange(70)], 1).astype(np.float32)
    for samples in (x, np.broadcast_to(x[:, :, None, None], (70, 2, 2, 2))):
        mean, std = scaling(samples, "columns")
        scaled = (samples - mean) / std
        assert float(std.ravel()[0]) == 1
        assert not scaled[:, 0].any()
        assert np.isfinite(scaled).all()


def test_a_column_of_huge_numbers_takes_nothing_from_the_others() -> None:
    x = TABLE * np.array([1.0, 1e30, 1.0], np.float32)
    mean, std = scaling(x, "columns")
    np.testing.assert_allclose(((x - mean) / std).std(0), 1, rtol=1e-4)


RUN: dict[str, Any] = sections("""
    name=table; devices={count: 8}; sessions={name: schedule, count: 1, rounds: 60}
    learning={partition: iid, model: logistic, local: {lr: 0.05}, evaluation: {every: 60}}
""")


def run(dataset: dict[str, Any], folder: Path) -> pd.DataFrame:
    scenario = edgefl.load_scenario({**RUN, "learning": {**RUN["learning"], "dataset": dataset}})
    return pd.read_csv(edgefl.simulate(scenario, folder, device="cpu") / "rounds.csv")


@pytest.mark.parametrize(("load", "gain"), [(load_breast_cancer, 0.02), (load_wine, 0.05)])
def test_a_table_trains_as_if_its_columns_were_standardised(load: Any, gain: float, folder: Path) -> None:
    """Scaling by column equals standardising by training samples; with a single scale, a run learns less."""
    table = load()
    order = np.random.default_rng(2).permutation(len(table.target))
    x, y, train = table.data[order], table.target[order], len(order) * 4 // 5
    standard = (x - x[:train].mean(0)) / x[:train].std(0)
    for name, each in (("raw", x), ("standard", standard)):
        parts = {"x_train": each[:train], "x_test": each[train:], "y_train": y[:train], "y_test": y[train:]}
        np.savez(f"{name}.npz", **parts)
    pd.DataFrame(x[:train]).assign(y=y[:train]).to_csv("train.csv", index=False)
    pd.DataFrame(x[train:]).assign(y=y[train:]).to_csv("test.csv", index=False)
    by_csv, by_npz = Csv(path="train.csv", test_path="test.csv").load(), Npz(path="raw.npz").load()
    for one, other in ((by_csv.train, by_npz.train), (by_csv.test, by_npz.test)):
        assert np.array_equal(one.x, other.x)
        assert np.array_equal(one.y, other.y)
    assert np.array_equal(by_csv.mean, by_npz.mean)
    assert np.array_equal(by_csv.std, by_npz.std)
    ours = run({"name": "npz", "path": "raw.npz"}, folder / "ours")
    expected = run({"name": "npz", "path": "standard.npz", "scale": "none"}, folder / "expected")
    as_one = run({"name": "npz", "path": "raw.npz", "scale": "all"}, folder / "as one")
    assert ours.accuracy.iloc[-1] == expected.accuracy.iloc[-1]
    assert ours.loss.iloc[-1] == pytest.approx(expected.loss.iloc[-1], rel=1e-4)  # float32 inputs
    assert ours.accuracy.iloc[-1] >= as_one.accuracy.iloc[-1] + gain


def with_a_gap(split: str) -> dict[str, list[Any]]:
    """Return twelve samples of groups a to c; training sample 7 lacks a number."""
    x = [[float("nan") if (split, row) == ("train", 7) else row, 1.0] for row in range(12)]
    return {"x": x, "label": [0, 1] * 6, "owner": list("aaaabbbbcccc")}


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("row", [5, 290])
def test_a_sample_that_is_not_finite_is_named_as_its_file_counts(row: int, value: float) -> None:
    """The error counts samples as in the file, before test samples are split off."""
    x = np.random.default_rng(0).normal(size=(300, 8))
    x[row:, 3] = value
    np.savez("a.npz", x=x, y=np.arange(300) % 2)
    with refused_at("", f"x of a.npz: sample {row} (counted from 0) has {value}"):
        Npz(path="a.npz").load()
    np.savez("b.npz", x_train=x, y_train=np.arange(300) % 2, x_test=x[:5], y_test=np.arange(5) % 2)
    with refused_at("", f"x_train of b.npz: sample {row}"):
        Npz(path="b.npz").load()
    np.savez("c.npz", x=np.ones((300, 2)), y=x[:, 3])
    with refused_at("", f"y of c.npz: sample {row} (counted from 0) has {value}"):
        Npz(path="c.npz").load()
    np.savez("d.npz", x_train=x[:5], y_train=x[:5, 3], x_test=np.ones((300, 8)), y_test=x[:, 3])
    with refused_at("", f"y_test of d.npz: sample {row}"):
        Npz(path="d.npz").load()
    cells = "\n".join(f"{number[0]},{number[3]},{k % 2}" for k, number in enumerate(x))
    Path("a.csv").write_text(f"a,b,kind\n{cells}\n")
    with refused_at("a.csv", f"column 'b' has '{value}' instead of a finite number in sample {row + 1}"):
        Csv(path="a.csv").load()


def test_rows_of_the_hub_that_are_not_finite(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "datasets", Hub(with_a_gap))
    by_group = {"columns": {"inputs": "x", "group": "owner"}, "on_demand": True}
    for how in ({"columns": {"inputs": "x"}}, by_group):
        with refused_at("", "split train of pets: sample 7", "nan"):
            HuggingFace(path="pets", **how).load()


class Gaps(Dataset):
    """A data set of six samples in three groups, with one missing number."""

    where: str = "train"

    def load(self) -> Data:
        x = np.arange(12, dtype=np.float32).reshape(6, 2)
        bad = x.copy()
        bad[4, 1] = np.nan
        y, groups = np.arange(6) % 2, np.arange(6) // 2
        train, test = (Split(bad if self.where == name else x, y, groups) for name in ("train", "test"))
        data = Data.unscaled(train, test, ("a", "b"), ("0", "1", "2"))
        return replace(data, by_group=Gaps.OnDemand(bad, y)) if self.where == "a group" else data

    class OnDemand:
        """A data set that loads samples by group on demand, with a missing number in the last group."""

        sizes, content = np.array([2, 2, 2]), ""

        def __init__(self, x: np.ndarray, y: np.ndarray) -> None:
            self._x, self._y = x, y

        def of(self, group: int) -> Split:
            return Split(self._x[2 * group : 2 * group + 2], self._y[2 * group : 2 * group + 2])


def training_data(where: str) -> TrainingData:
    settings = LearningSettings(dataset=Gaps(where=where), model="logistic", partition="natural")
    return TrainingData(settings, torch.device("cpu"), devices=3)


@pytest.mark.parametrize(("where", "what"), [("train", "the training data"), ("test", "the test data")])
def test_a_data_set_of_ones_own_is_looked_at_too(where: str, what: str) -> None:
    with refused_at("learning.dataset", f"{what}: sample 4", "nan"):
        training_data(where)


def test_samples_on_demand_are_looked_at_when_they_come() -> None:
    data = training_data("a group")
    data.pool.bring([0, 1])
    assert len(data.train.x) == 4
    data.pool.bring([2])
    with refused_at("learning.dataset", "the training data of group 2: sample 0"):
        assert not len(data.train.x)


@pytest.mark.parametrize(
    ("sample", "noted"), [((8, 8, 3), 1), ((9, 8, 1), 1), ((3, 8, 8), 0), ((1, 8, 3), 0), ((8, 8), 0)]
)
def test_images_with_their_channels_last_are_noted(sample: tuple[int, ...], noted: int) -> None:
    x = np.random.default_rng(1).integers(0, 256, (20, *sample), dtype=np.uint8)
    np.savez("a.npz", x=x, y=np.arange(20) % 2)
    settings = LearningSettings(dataset=Npz(path="a.npz"), model="logistic")
    notes = TrainingData(settings, torch.device("cpu"), devices=3).notes
    assert len(notes) == noted
    assert all("write the channels first: x.transpose(0, 3, 1, 2)" in note for note in notes)
