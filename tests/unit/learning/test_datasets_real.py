"""Test the real data sets that are installed here, and on request those that must be downloaded."""

import numpy as np
import pytest

from edgefl.config import registry
from edgefl.errors import EdgeflError
from edgefl.learning.datasets import Data, shakespeare
from edgefl.learning.datasets._files import locate, read_set


def real(name: str) -> Data:
    """Load a data set that is installed here, or skip the test."""
    dataset = registry.get("datasets", name)()
    try:
        dataset.check()
    except EdgeflError as error:
        pytest.skip(f"not installed: {str(error).splitlines()[-1]}")
    return dataset.load()


def test_mnist_has_the_published_counts() -> None:
    data = real("mnist")
    assert data.train.x.shape == (60_000, 28, 28)
    assert data.test.x.shape == (10_000, 28, 28)
    counts = [5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949]  # MNIST's published counts
    np.testing.assert_array_equal(np.bincount(data.train.y), counts)
    assert (round(float(data.mean) / 255, 4), round(float(data.std) / 255, 4)) == (0.1307, 0.3081)


def test_mnist_5k_is_a_part_of_mnist_in_equal_classes() -> None:
    data = real("mnist_5k")
    for split, per_class in ((data.train, 400), (data.test, 100)):
        assert split.x.shape == (10 * per_class, 28, 28)
        np.testing.assert_array_equal(np.bincount(split.y), np.full(10, per_class))
    whole = {image.tobytes() for image in real("mnist").train.x}
    assert all(image.tobytes() in whole for split in (data.train, data.test) for image in split.x)


def test_reuters_r8_has_the_published_counts() -> None:
    data = real("reuters_r8")
    # counts from Cardoso-Cachopo's table of R8
    counts = {
        "acq": (1596, 696),
        "crude": (253, 121),
        "earn": (2840, 1083),
        "grain": (41, 10),
        "interest": (190, 81),
        "money-fx": (206, 87),
        "ship": (108, 36),
        "trade": (251, 75),
    }
    for split, column in ((data.train, 0), (data.test, 1)):
        found = dict(zip(data.label_names, np.bincount(split.y).tolist(), strict=True))
        assert found == {name: pair[column] for name, pair in counts.items()}
        assert split.x.shape[1:] == (256,)
        assert split.x.dtype == np.int16
    assert data.train.x.max() < 30_522


def test_shakespeare_has_the_roles_of_the_plays() -> None:
    data = real("shakespeare")
    assert len(data.group_names) == 660
    assert data.num_classes == len(set(shakespeare.SYMBOLS)) == 81
    assert "hamlet: HAMLET" in data.group_names
    for split in (data.train, data.test):
        assert split.x.shape[1:] == (80,)
        assert split.x.dtype == np.uint8
        np.testing.assert_array_equal(np.unique(split.groups), np.arange(660))
        assert split.x.min() >= 1
        assert split.x.max() <= 81
    # a sample has the characters before its label, and each sample begins `stride` after the previous sample
    x, y, groups = data.train.x, data.train.y, data.train.groups
    same = np.flatnonzero(groups[1:] == groups[:-1])[:1000]
    np.testing.assert_array_equal(x[same + 1, :-10], x[same, 10:])
    np.testing.assert_array_equal(x[same + 1, -10], y[same] + 1)


def test_shakespeare_whole_text() -> None:
    real("shakespeare")
    files = shakespeare.Shakespeare.FILES
    plays = {name: play.decode() for name, play in read_set(files, locate(files)).items()}
    roles = [text for play in plays.values() for text in shakespeare.speeches(play).values()]
    assert len(roles) == 1426
    assert round(sum(map(len, roles)) / 1e6, 2) == 4.44
    assert set("".join(roles)) == set(shakespeare.SYMBOLS)
    assert sum(len(text) >= 1000 for text in roles) == 660


# ---- with internet, on request: pytest -m internet


@pytest.mark.internet
@pytest.mark.parametrize(
    ("name", "train", "test", "classes"),
    [
        ("fashion_mnist", 60_000, 10_000, 10),
        ("mnist", 60_000, 10_000, 10),
        ("cifar10", 50_000, 10_000, 10),
        ("cifar100", 50_000, 10_000, 100),
        ("svhn", 73_257, 26_032, 10),
        ("ag_news", 120_000, 7_600, 4),
        ("tiny_imagenet", 100_000, 10_000, 200),
        ("emnist", 697_932, 116_323, 62),
    ],
)
def test_downloads(name: str, train: int, test: int, classes: int, request: pytest.FixtureRequest) -> None:
    """Downloaded sets load, with MD5 sums checked by the loaders; files stay in the user's cache."""
    if "internet" not in request.config.getoption("markexpr"):
        pytest.skip("downloads data sets: asked for by -m internet")
    data = registry.get("datasets", name)().load()
    assert (len(data.train.y), len(data.test.y), data.num_classes) == (train, test, classes)
    assert set(np.unique(data.train.y)) == set(range(classes))
