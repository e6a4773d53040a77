"""Diabetes: disease progression within a year, predicted from ten measurements; the samples ship with edgefl."""

from pathlib import Path

import numpy as np

from edgefl.learning.datasets import Data, Dataset, Split

FILE = Path(__file__).with_name("diabetes.npz")
TEST_SAMPLES = 89
OUTPUT = ("progression",)


class Diabetes(Dataset):
    """353 training and 89 test patients, [10] float32 each; the target is a number, 25 to 346.

    The inputs are age, sex, body mass index, mean blood pressure and six serum measurements; the target measures the
    disease's progression one year later. Each input is standardised over the training samples. The test samples are
    drawn at random, but are the same in all runs. Least squares on all training samples explains 52 % of the variance
    of the test targets, the limit of a linear model (`model: logistic`, here with one output).

    The data set is small, for trying out a regression: 20 devices hold 17 or 18 patients each.

    Source: Efron, Hastie, Johnstone and Tibshirani, Least Angle Regression, Annals of Statistics 32, 2004, as in
    scikit-learn's `load_diabetes(scaled=False)` (BSD 3-Clause, copyright the scikit-learn developers).
    """

    @property
    def task(self) -> str:
        return "regression"

    def load(self) -> Data:
        with np.load(FILE) as file:
            x, y, tests = file["x"], file["y"], file["tests"]
        whole = Split(x, y)
        train, test = whole.part(~tests), whole.part(tests)
        mean, std = train.x.mean(0, dtype=np.float64), train.x.std(0, dtype=np.float64)
        return Data(train, test, 1, mean.astype(np.float32), std.astype(np.float32), OUTPUT)
