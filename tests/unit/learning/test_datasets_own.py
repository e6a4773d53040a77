"""Test a user's own data sets (.npz, CSV, folders of images, the Hub), and models of other libraries."""

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import yaml
from PIL import Image

import edgefl
from edgefl import testing
from edgefl.config import outside, registry
from edgefl.learning.data.tested_labels import doubts
from edgefl.learning.datasets.csv import Csv
from edgefl.learning.datasets.huggingface import HuggingFace
from edgefl.learning.datasets.image_folder import ImageFolder
from edgefl.learning.datasets.npz import Npz
from edgefl.learning.federation.cell_building import refuse_outputs
from edgefl.learning.local import cost
from edgefl.learning.models.factory import Factory
from edgefl.learning.tasks.classification import Classification
from edgefl.learning.tasks.regression import Regression
from edgefl.scenario.data_loading import Loaded
from tests.refusals import refused_at
from tests.tables import sections
from tests.unit.learning.small_files import Hub

X = np.arange(80, dtype=np.float32).reshape(20, 4)
Y = np.arange(20) % 2
TINY = "tests.tools.factories"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_npz_with_its_own_test_samples() -> None:
    np.savez(
        "a.npz", x_train=X, y_train=Y + 5, x_test=X[:4], y_test=Y[:4] + 5, groups_train=Y, groups_test=Y[:4]
    )
    data = Npz(path="a.npz").load()
    assert data.label_names == ("5", "6")
    assert np.array_equal(data.train.y, Y)
    assert np.array_equal(data.test.x, X[:4])
    assert data.group_names == ("0", "1")
    assert data.mean.tolist() == X.mean(0).tolist()
    testing.check(Npz, path="a.npz")


@pytest.mark.parametrize(
    "names", [("x", "y", "x_test", "y_test"), ("x_train", "y_train", "x_test", "y_test", "y")]
)
def test_no_array_of_an_npz_is_left_out_unsaid(names: tuple[str, ...]) -> None:
    """Test samples beside x and y were left out without a word, and others were split off x."""
    np.savez("a.npz", **{name: X if name[0] == "x" else Y for name in names})
    with refused_at("", "a.npz holds", "name training samples x_train, y_train"):
        Npz(path="a.npz").load()


def test_numbers_and_several_labels_are_taken_as_they_are() -> None:
    np.savez("a.npz", x=X, y=X[:, 0] / 2)
    numbers = Npz(path="a.npz").load()
    assert (numbers.train.y.dtype, numbers.num_classes, len(numbers.test.y)) == (np.float32, 1, 4)
    assert np.array_equal(numbers.train.y, numbers.train.x[:, 0] / 2)
    np.savez("b.npz", x=X, y=np.stack([Y, 1 - Y], 1))
    several = Npz(path="b.npz").load()
    assert (several.train.y.dtype, several.train.y.shape) == (np.float32, (16, 2))
    Path("c.csv").write_text("area,rent\n" + "".join(f"{k},{2 * k}\n" for k in range(10)))
    rents = Csv(path="c.csv", targets="numbers")
    data = rents.load()
    assert (rents.task, data.label_names) == ("regression", ("rent",))
    assert np.array_equal(data.train.y, 2 * data.train.x[:, 0])
    testing.check(Csv, path="c.csv", targets="numbers")


@pytest.mark.parametrize(
    ("labels", "noted"), [((-1, 0, 1, 2), True), ((-1, 1), False), ((-2, -1, 0), False), ((0, 1), False)]
)
@pytest.mark.parametrize("file", ["npz", "csv"])
def test_samples_that_seem_to_have_no_label_are_noted(
    labels: tuple[int, ...], noted: bool, file: str
) -> None:
    """Many files mark samples without a label by -1; beside 1 alone it is one of two classes."""
    y = np.resize(labels, 20)
    np.savez("a.npz", x=X, y=y)
    Path("a.csv").write_text("a,kind\n" + "".join(f"{n},{label}\n" for n, label in enumerate(y)))
    data = {"npz": Npz(path="a.npz"), "csv": Csv(path="a.csv")}[file].load()
    said = "label is -1, a class beside 0, 1, 2: 5; if -1 marks samples without a label, remove these samples"
    assert [said in note for note in doubts(data)] == [True] * noted


def test_npz_splits_test_samples_off_always_alike() -> None:
    np.savez("a.npz", x=(X % 256).astype(np.uint8), y=np.array(["cat", "dog"])[Y])
    first, again = (Npz(path="a.npz", test_share=0.25).load() for _ in range(2))
    assert (len(first.train.y), len(first.test.y)) == (15, 5)
    assert np.array_equal(first.test.x, again.test.x)
    assert first.train.x.dtype == np.uint8
    assert first.label_names == ("cat", "dog")
    both = np.concatenate([first.train.x, first.test.x])
    assert np.array_equal(np.sort(both[:, 0]), (X % 256)[:, 0]), "each sample is in one of the two sets"


def test_csv_columns_are_scaled_one_by_one() -> None:
    rows = "\n".join(f"{i},{1000 * i},{'ab'[i % 2]},p{i % 3}" for i in range(10))
    Path("a.csv").write_text(f"mass,height,kind,person\n{rows}\n")
    data = Csv(path="a.csv", columns={"label": "kind", "group": "person"}, test_share=0.2).load()
    assert data.label_names == ("a", "b")
    assert data.group_names == ("p0", "p1", "p2")
    assert data.train.x.shape == (8, 2)
    assert data.mean.tolist() == data.train.x.mean(0).tolist()
    assert float(data.std[1] / data.std[0]) == pytest.approx(1000)
    testing.check(Csv, path="a.csv", columns={"label": "kind", "group": "person"})


def test_csv_with_a_file_of_test_samples() -> None:
    Path("a.csv").write_text("x,y\n1,0\n2,1\n3,1\n")
    Path("b.csv").write_text("x,y\n4,1\n")
    data = Csv(path="a.csv", test_path="b.csv").load()
    assert data.train.x.tolist() == [[1], [2], [3]]
    assert (data.test.x.tolist(), data.test.y.tolist()) == ([[4]], [1])


@pytest.mark.parametrize("head", ["0,1,2,3", "4,5,6,y", "0,1,y,3", "4000.5,3990,3980,y", "a,1,0,y"])
def test_numbers_may_be_names_of_columns(head: str) -> None:
    """Columns are numbered as by pandas, or named by a quantity such as a wavelength."""
    rows = "".join(f"{k},{k % 7},{k % 2},{k % 3}\n" for k in range(10))
    Path("a.csv").write_text(f"{head}\n{rows}")
    columns = {"label": "y"} if "y" in head else {}
    assert Csv(path="a.csv", columns=columns).load().train.x.shape == (8, 3)


@pytest.mark.parametrize(
    ("content", "options", "reason"),
    [
        ({"x_train": X, "y_train": Y}, {}, "lacks x_test, y_test; its arrays are x_train, y_train"),
        ({"x": X, "y": Y[:3]}, {}, "x is float32 [20, 4], but y has 3 labels"),
        ({"x": X, "y": X[:, :, None]}, {}, "y is float32 [20, 4, 1]: y needs one label per sample"),
        ({"x": X, "y": np.stack([Y, Y])}, {}, "x is float32 [20, 4], but y has 2 labels"),
        ({"x": X, "y": Y * 0}, {}, "there is only one class, '0'"),
        (
            {"x_train": X, "y_train": Y, "x_test": X, "y_test": Y / 1},
            {},
            "y_train is int64, but y_test is float64: convert labels by y.astype(int)",
        ),
        ({"x": X, "y": Y, "groups": Y[:2]}, {}, "groups must name one group per sample"),
        (
            {"x": X, "y": np.array([object()] * 20)},
            {},
            "or it holds Python objects, which edgefl does not load",
        ),
        ("x,y\n1,0\n2\n", {}, "a.csv:3: 2 values expected, not 1"),
        ({"x": X, "y": np.array(["cat", ""])[Y]}, {}, "a.npz: y is empty in sample 2 (counted from 1); fill"),
        ({"x": X, "y": Y, "groups": np.array(["", "p"])[Y]}, {}, "groups is empty in sample 1"),
        ("x,y\n1,0\nfar,1\n", {}, "column 'x' has 'far' instead of a number in sample 2"),
        ("x,y\n1,0\nfar,1\n", {}, "otherwise correct the value, or remove the sample or the column"),
        ("x,y\n1,0\n ,1\n", {}, "column 'x' is empty in sample 2 (counted from 1); fill the gap, or remove"),
        ("x,y\n1,cat\n2,\n3,dog\n", {}, "column 'y' is empty in sample 2"),
        ("x,z,y\n1,p,0\n2,,1\n", {"columns": {"group": "z"}}, "column 'z' is empty in sample 2"),
        ("5.1,3.5,cat\n4,3,dog\n6,4,cat\n", {}, "5.1, 3.5, cat, looks like a sample instead of column names"),
        ("0,0,9,cat\n4,0,3,dog\n0,1,12,cat\n", {}, "add a line of names above it"),
        ("x,y\n1,0\nnan,1\n", {}, "column 'x' has 'nan' instead of a finite number in sample 2"),
        ("x,y\n1,0\n2,1\n", {"columns": {"label": "z"}}, "a.csv has no column 'z'; its columns are x, y"),
        ("x,y\n1,0.5\n2,1.25\n", {}, "such as 0.5, not classes: for a regression, set targets: numbers"),
        (
            "x,y\n1,0.0\n2,1.0\n",
            {},
            "such as 1.0: for classes, write whole numbers, such as 1; for a regression",
        ),
        ("x\n1\n", {}, "needs a line of at least two column names"),
        ("x;y\n1;0\n2;1\n", {}, "has ';' between values; separate values by commas"),
        ("x;z;y\n0,5;1,2;0\n2;1,5;1\n", {}, "by commas, and write decimals with a point"),
        ("x,x,y\n1,2,0\n2,3,1\n", {}, "a.csv: the first line has two columns 'x'; rename one of them"),
        ("x,y,y\n1,0.5,0\n2,3,1\n", {"columns": {"label": "y"}}, "has two columns 'y'"),
        ("x,y\n1,0\n2,1\n", {"test_share": 0.01}, "of 2 samples leaves none to train on"),
    ],
)
def test_files_that_do_not_fit(content: Any, options: dict[str, Any], reason: str) -> None:
    dataset: type[Npz | Csv] = Csv if isinstance(content, str) else Npz
    path = Path("a.csv" if dataset is Csv else "a.npz")
    if dataset is Csv:
        path.write_text(content)
    else:
        np.savez(path, **content)
    with refused_at("", reason):
        dataset(path=path, **options).load()


def test_a_csv_file_in_another_encoding() -> None:
    Path("a.csv").write_bytes("x,y\n1,grün\n2,rot\n".encode("latin-1"))
    with refused_at("", "a.csv cannot be read as a CSV file", "save the file as UTF-8"):
        Csv(path="a.csv").load()


@pytest.mark.parametrize("parts", [("train", "test"), (".",)])
def test_a_folder_of_images(parts: tuple[str, ...]) -> None:
    for part in parts:
        for name, shade in (("cat", 10), ("dog", 200)):
            Path("pets", part, name).mkdir(parents=True)
            for number in range(5):
                Image.new("RGB", (9, 7), (shade, 0, number)).save(Path("pets", part, name, f"{number}.png"))
    data = ImageFolder(path="pets", size=(4, 6)).load()
    assert data.label_names == ("cat", "dog")
    assert data.train.x.shape[1:] == (3, 4, 6)
    assert len(data.train.y) == (10 if len(parts) == 2 else 8)
    assert set(data.train.x[data.train.y == 1][:, 0].ravel()) == {200}
    testing.check(ImageFolder, path="pets")


def test_folders_that_do_not_fit() -> None:
    with refused_at("", "pets does not exist (looked in the scenario's folder and in "):
        ImageFolder(path="pets").check()
    with refused_at("", "/dev/null is a file: name a folder that contains a folder of images for each"):
        ImageFolder(path="/dev/null").check()
    for file, content, reason in (
        ("pets/cat/note", "", "at least two classes, but has only ['cat']"),
        ("pets/dog/note", "", "no images in cat, dog"),
        ("pets/dog/1.png", "no image", "dog/1.png cannot be read as an image"),
    ):
        Path(file).parent.mkdir(parents=True, exist_ok=True)
        Path(file).write_text(content)
        with refused_at("", reason):
            ImageFolder(path="pets").load()


def pets(split: str) -> dict[str, list[Any]]:
    return {
        "image": [Image.new("L", (5, 5), n) for n in range(6)],
        "label": [0, 1] * 3,
        "x": X[:6].tolist(),
        "owner": ["eve", "bob", "eve", "ann", "bob", "eve"],
    }


def test_data_of_the_hub(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "datasets", Hub(pets))
    data = HuggingFace(path="pets", size=(8, 8)).load()
    assert (data.train.x.shape, data.label_names) == ((6, 8, 8), ("cat", "dog"))
    half = HuggingFace(path="pets", columns={"inputs": "x"}, test=None, test_share=0.5).load()
    assert half.train.x.shape == (3, 4)
    with refused_at("", "pets", "'text'", "image, label, x, owner"):
        HuggingFace(path="pets", columns={"inputs": "text"}).check()
    empty = pets("test") | {"owner": ["eve", None] * 3}
    monkeypatch.setitem(sys.modules, "datasets", Hub(lambda split: empty if split == "test" else pets(split)))
    with refused_at("", "pets: column 'owner' is empty in sample 8"):
        HuggingFace(path="pets", columns={"inputs": "x", "group": "owner"}).load()
    with refused_at("", "nobody/nothing", "on this machine"):
        HuggingFace(path="nobody/nothing").check()


ON_DEMAND = """\
name: pets
devices: {count: 3}
sessions: {name: schedule, count: 1, rounds: 2}
learning:
  {dataset: {name: huggingface, path: pets, columns: {inputs: x, group: owner}}, partition: natural,
  model: logistic, local: {steps: 2}}
"""


def test_samples_of_the_hub_may_be_read_on_demand(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """If all samples determine the scaling, a run is the same whether samples are read on demand or all in memory."""
    monkeypatch.setitem(sys.modules, "datasets", Hub(pets))
    data = HuggingFace(path="pets", columns={"group": "owner"}, on_demand=True, size=(5, 5)).load()
    assert data.group_names == ("ann", "bob", "eve")
    assert data.by_group.sizes.tolist() == [1, 2, 3]
    assert [data.by_group.of(group).x[:, 0, 0].tolist() for group in range(3)] == [[3], [1, 4], [0, 2, 5]]
    assert data.by_group.of(1).y.tolist() == [1, 0]
    rows = []
    for how in ("owner}", "owner}, on_demand: true"):
        scenario = edgefl.load_scenario(yaml.safe_load(ON_DEMAND.replace("owner}", how)))
        run = edgefl.simulate(scenario, tmp_path / how, device="cpu")
        rows.append((run / "rounds.csv").read_bytes())
    assert rows[0] == rows[1]
    for wanting in ({"columns": {}}, {"test": None}):
        with refused_at("", "group", "test"):
            HuggingFace(path="pets", on_demand=True, **{"columns": {"group": "owner"}, **wanting})


def test_without_its_package_the_hub_is_refused_with_the_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "datasets", None)
    with refused_at("", "pip install 'edgefl-cosim[huggingface]'"):
        HuggingFace(path="ylecun/mnist").check()


def test_a_model_of_another_library() -> None:
    module = Factory(function="tests.tools.factories:tiny", arguments={"in_chans": 1}).build((1, 8, 8), 5)
    assert module(torch.zeros(2, 1, 8, 8)).shape == (2, 5)


def test_grey_images_get_the_channel_that_a_module_wants() -> None:
    factory = Factory(function="tests.tools.factories:convolution", arguments={"in_channels": 1})
    convolution = factory.build((8, 8), 5)
    assert convolution(torch.zeros(2, 8, 8)).shape == (2, 5, 1, 1)
    assert [name for name, _ in convolution.named_parameters()] == ["weight", "bias"]


def test_a_module_with_a_fixed_number_of_outputs_is_taken_as_it_is() -> None:
    """A module need not take `num_classes`, which most modules of users do not know."""
    factory = Factory(function="torch.nn:Linear", arguments={"in_features": 8, "out_features": 3})
    assert factory.build((8,), 5)(torch.zeros(2, 8)).shape == (2, 3)
    with refused_at("", "'torch.nn:Linear' is not a Model", "{name: factory, function: 'module:Class'}"):
        registry.get("models", "torch.nn:Linear", trusted=True)


def test_a_model_for_other_data_is_one_message() -> None:
    with refused_at("learning.model", "[8, 8]", "RuntimeError"):
        cost.flops_per_sample(torch.nn.Linear(5, 2), (8, 8))


@pytest.mark.parametrize(
    ("function", "arguments", "message"),
    [
        ("builtins:max", {"x": 1}, "builtins:max(x=1, num_classes=2) fails: TypeError"),
        ("builtins:max", {"x": 1}, "; correct learning.model.arguments, or the function"),
        ("builtins:dict", {}, "builtins:dict returns a dict, not an nn.Module"),
        ("math:floor", {}, "math:floor takes (x, /), but gets num_classes ("),
        (f"{TINY}:tiny", {"in_chan": 1}, "takes (num_classes: int, in_chans: int = 3) -> torch.nn"),
        (f"{TINY}:tiny", {"in_chan": 1}, "but gets in_chan, num_classes (got an unexpected keyword argument"),
        (
            f"{TINY}:convolution",
            {},
            "gets num_classes (missing a required argument: 'in_channels'): name the",
        ),
    ],
)
def test_functions_that_make_no_model(function: str, arguments: dict[str, Any], message: str) -> None:
    with refused_at("learning.model", message):
        Factory(function=function, arguments=arguments).build((3,), 2)


def test_a_strangers_function_is_not_called(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(outside.ALLOW)
    for function in ("os:system", "edgefl.config.outside:allow"):
        scenario = sections(f"""
            name=a; devices.count=2; sessions={{name: schedule, count: 1, rounds: 1}}
            learning={{dataset: digits, model: {{name: factory, function: '{function}'}}}}
        """)
        with refused_at("learning.model.function", function):
            edgefl.load_scenario(scenario)


class Tokens(torch.nn.Embedding):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return super().forward(x.long())


def test_a_class_per_token_is_refused() -> None:
    module = Tokens(5, 3)
    with refused_at("learning.model", [1, 4, 3], "every_token"):
        refuse_outputs(module, (4,), 3, Classification())
    with refused_at("learning.model", [1, 3], "4 classes"):
        refuse_outputs(torch.nn.Linear(4, 3), (4,), 4, Classification())


def test_samples_of_two_shapes_are_refused(tmp_path: Path) -> None:
    """Arrays of training and test samples have the same shape, apart from their numbers of samples."""
    x, y = np.zeros((20, 4), np.float32), np.arange(20) % 2
    np.savez(tmp_path / "a.npz", x_train=x, y_train=y, x_test=x[:, :3], y_test=y)
    with refused_at("learning.dataset", [4], [3]):
        Loaded(download=False)(Npz(path=tmp_path / "a.npz"))


@pytest.mark.parametrize(
    ("y", "remedy"), [(Y / 1 - 1, "convert whole numbers by y.astype(int)"), (X[:, 0], "")]
)
def test_labels_saved_as_floats_are_refused_with_their_file(y: np.ndarray, remedy: str) -> None:
    np.savez("a.npz", x=X, y=y)
    if not remedy:
        y[0] = 0.5
    with refused_at("", "a.npz: y is float", "[20]: classes need one label", remedy, "task: regression"):
        Classification().check(Npz(path="a.npz").load())


@pytest.mark.parametrize("y", [Y[:, None], Y[:, None].astype(str)])
def test_a_column_of_labels_is_refused_with_its_remedy(y: np.ndarray) -> None:
    np.savez("a.npz", x=X, y=y)
    with refused_at("", "a.npz: y is ", "one column", "becomes a list by y.ravel()"):
        Classification().check(Npz(path="a.npz").load())


def test_numbers_saved_as_integers_are_refused_with_their_file() -> None:
    np.savez("a.npz", x_train=X, y_train=Y, x_test=X, y_test=Y)
    with refused_at(
        "", "a.npz: y_train is int64 [20]: regression needs", "y.astype(float)", "targets: numbers"
    ):
        Regression().check(Npz(path="a.npz").load())


def npz_of(test: list[str]) -> Npz:
    number = len(test)
    np.savez("a.npz", x_train=X, y_train=np.array(["b", "d"])[Y], x_test=X[:number], y_test=np.array(test))
    return Npz(path="a.npz")


def csv_of(test: list[str]) -> Csv:
    Path("a.csv").write_text("x,y\n" + "".join(f"{k},{'bd'[k % 2]}\n" for k in range(6)))
    Path("b.csv").write_text("x,y\n" + "".join(f"{k},{label}\n" for k, label in enumerate(test)))
    return Csv(path="a.csv", test_path="b.csv")


def folder_of(test: list[str]) -> ImageFolder:
    for part, labels in (("train", list("bd")), ("test", test)):
        for number, label in enumerate(labels):
            Path("pets", part, label).mkdir(parents=True, exist_ok=True)
            Image.new("RGB", (3, 3), (number, 0, 0)).save(Path("pets", part, label, f"{number}.png"))
    return ImageFolder(path="pets")


def hub_of(test: list[str], on_demand: bool = False) -> HuggingFace:
    def columns(split: str) -> dict[str, list[Any]]:
        labels = test if split == "test" else list("bdbdbd")
        number = len(labels)
        return {"x": X[:number].tolist(), "label": labels, "owner": (["eve", "bob"] * number)[:number]}

    sys.modules["datasets"] = Hub(columns)
    return HuggingFace(path="pets", columns={"inputs": "x", "group": "owner"}, on_demand=on_demand)


@pytest.mark.parametrize(
    "make", [npz_of, csv_of, folder_of, hub_of, lambda test: hub_of(test, on_demand=True)]
)
def test_labels_that_only_test_samples_have_change_nothing_else(
    make: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Test samples with the labels a, c and e are left out; the numbers of b and d stay 0 and 1."""
    monkeypatch.setitem(sys.modules, "datasets", None)
    plain, odd = make(list("bdd")).load(), make(list("bddacce")).load()
    assert odd.left_out == {"a": 1, "c": 2, "e": 1}
    assert (odd.label_names, odd.num_classes, plain.left_out) == (("b", "d"), 2, {})
    for name in ("x", "y"):
        for one, other in ((odd.train, plain.train), (odd.test, plain.test)):
            assert np.array_equal(getattr(one, name), getattr(other, name))
    if odd.by_group is not None:
        assert [odd.by_group.of(group).y.tolist() for group in range(2)] == [[1, 1, 1], [0, 0, 0]]


def test_a_label_whose_only_sample_is_split_off_for_testing_is_left_out() -> None:
    np.savez("a.npz", x=X, y=np.where(np.arange(20) == 19, 9, Y))
    held = [Npz(path="a.npz", test_share=share).load() for share in (0.1, 0.9)]
    assert {data.num_classes for data in held} <= {2, 3}
    for data in held:
        assert (data.num_classes == 3) == (2 in data.train.y) == (not data.left_out)
    np.savez("a.npz", x_train=X, y_train=Y * 0, x_test=X, y_test=Y)
    with refused_at("", "there is only one class, '0'"):
        Npz(path="a.npz").load()
