"""Test that the YAML reader reads a text strictly, or refuses it with one message that names file and line."""

import math
from pathlib import Path
from time import perf_counter
from typing import Any

import pytest
import yaml

from edgefl.config.yaml_source import LARGEST_FILE, Source, parse_value, write
from edgefl.errors import EdgeflError


def saved(folder: Path, content: str | bytes) -> Path:
    path = folder / "a.yaml"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def refusal(folder: Path, content: str | bytes) -> str:
    with pytest.raises(EdgeflError) as error:
        Source(saved(folder, content))
    message = str(error.value)
    assert len(message.removeprefix(str(folder))) < 250
    return message.removeprefix(f"{folder}/")


def read(folder: Path, content: str | bytes) -> dict[str, Any]:
    return Source(saved(folder, content)).data


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"a: 1\nb: \0\n", "a.yaml:2: contains the character U+0000, which is not text"),
        (b"a: 1\n\nb: \x07\n", "a.yaml:3: contains the character U+0007"),
        (b"a: 1\nb: \xff\n", "a.yaml:2: contains the byte 0xff, which is not UTF-8; save the file as UTF-8"),
        ("a: 1\n".encode("utf-16"), "a.yaml:1: contains the byte 0xff"),
        ('a: "\\0"', "a.yaml:1: '\\x00' contains the character U+0000"),
        ('b: 1\na: "\\ud800"', "a.yaml:2: '\\ud800' contains the character U+D800"),
        ('a: "\\UFFFFFFFF"', "a.yaml:1: not valid YAML"),
        ("%YAML 1." + "9" * 5000 + "\n---\na: 1\n", "a.yaml:1: not valid YAML"),
        ("", "a.yaml:1: is empty; a mapping of keys to values is expected"),
        ("# nothing\n", "a.yaml:1: is empty"),
        ("---\n", "a.yaml:1: is empty"),
        ("\n- 1\n", "a.yaml:2: a mapping of keys to values is expected"),
        ("word", "a.yaml:1: a mapping of keys to values is expected"),
        ("a: 1\n---\nb: 2\n", "a.yaml:2: a second document begins here (---); a file holds one"),
        ("? [a]\n: b\n", "a.yaml:1: a key must be a plain word or number"),
        ("a: 1\n? {a: 1}\n: b\n", "a.yaml:2: a key must be a plain word or number"),
        ("a: &x 1\n*x : b\n", "a.yaml:2: a key must be a plain word or number"),
        ("a: {: b}\n", "a.yaml:1: a key is missing before the colon"),
        ("a: 1\n: b\n", "a.yaml:2: a key is missing before the colon"),
        ("a: 1\nb: !!int 5\n", "a.yaml:2: the tag 'tag:yaml.org,2002:int' is not supported"),
        (
            "a: !!python/object/apply:os.system [ls]",
            "a.yaml:1: the tag 'tag:yaml.org,2002:python/object/apply",
        ),
        ("a: !foo x", "a.yaml:1: the tag '!foo' is not supported"),
        ("a: !x!y z", "a.yaml:1: tags such as !x are not supported"),
        ("a: " + "[" * 500, "a.yaml:1: nested deeper than 50 levels"),
        ("a: 1\nb: " + "[" * 500 + "]" * 500, "a.yaml:2: nested deeper than 50 levels"),
        ("".join(f"{' ' * n}a:\n" for n in range(500)), "a.yaml:51: nested deeper than 50 levels"),
        ("a: " + "1" * 6000, "a.yaml:1: a number is 6000 characters long, '11111"),
        ("a: &a [*a]", "a.yaml:1: the alias '*a' is inside the value of its own anchor"),
        ("a: *b", "a.yaml:1: the alias '*b' has no anchor above it; put text in quotes"),
        ("a: &x 1\nb: &x 2", "a.yaml:2: the anchor 'x' is given twice"),
        ("a: 1\nb: 2\na: 3", "a.yaml:3: 'a' is given twice, first on line 1"),
        ('1: x\n"1": y', "a.yaml:2: '1' is given twice, first on line 1"),
        ("x: 1\n<<: 3", "a.yaml:2: << needs a mapping, or a list of mappings"),
        ("a: @x", "a.yaml:1: a value that begins like this must be in quotes, here 'a: @x'"),
        ("a: *.yaml", "a.yaml:1: a value that begins with & or * must be in quotes"),
        ('a: "\\q"', "a.yaml:1: in double quotes a backslash begins an escape"),
        # the message names the line to change
        ("a:\n\tb: 1\n", "a.yaml:2: a tab, which YAML does not allow here; use spaces"),
        ("a:\n  b: {x: 1}\n\tc: 1\n", "a.yaml:3: a tab"),
        ("l:\n  a: 1\n    b: 2\n  c: 3\n", "a.yaml:3: this line is indented by 4 spaces, line 2 by 2"),
        ("l:\n  a: 1\n  b: 2\n c: 3\nm: 4\n", "a.yaml:4: this line is indented by 1 space, line 3 by 2"),
        # the first line has another indentation, but the parser notices this only at the second line
        (
            "l:\n    a: 1\n  b: 2\n  c: 3\n",
            "a.yaml:2: this line is indented by 4 spaces, lines below it by 2",
        ),
        ("l:\n a: 1\n  b: 2\n  c: 3\n", "a.yaml:2: this line is indented by 1 space, lines below it by 2"),
        (" a: 1\nb: 2\nc: 3\n", "a.yaml:1: this line is indented by 1 space, lines below it by 0"),
        ("a: 1\n  # by the way\n\n  b: 2\n", "a.yaml:4: this line is indented by 2 spaces, line 1 by 0"),
        ("a:\n  - b\n  - c\n d: 1\n", "a.yaml:4: this line is indented by 1 space, line 3 by 2"),
        (
            "d: {count: 4\ns: {name: x}\n",
            "a.yaml:1: the { opened in this line is not closed by line 2, or a comma before it is missing",
        ),
        (
            "a: 1\nx: [1,\n  2\nb: 3\n",
            "a.yaml:2: the [ opened in this line is not closed by line 4, or a comma before it is missing",
        ),
        ('a: 1\nb: "x\nc: 2\n', "a.yaml:2: the quote opened here is never closed"),
        ('a: "x\nb: "y"\nc: 2\n', "a.yaml:1: the quote opened here is closed only in line 2"),
        ("a: [1]]\n", "a.yaml:1: this bracket was never opened, here 'a: [1]]'"),
        (
            "a: b: c\n",
            "a.yaml:1: the value contains a second ': '; write a: {b: c} if keys are nested, or a: 'b: c'",
        ),
        ("a: 'x' y\n", "a.yaml:1: text that is neither 'key: value' nor part of the value above"),
        ("a:\n  b: 2\n  - 1\n", "a.yaml:3: a list item among keys"),
    ],
)
def test_what_cannot_be_read_is_refused_with_its_line(
    tmp_path: Path, content: str | bytes, message: str
) -> None:
    assert refusal(tmp_path, content).startswith(message)


@pytest.mark.parametrize(
    ("content", "line", "write"),
    [
        ("l:\n  a: 1\n  lr 0.1\n  b: 2\n", 3, "lr: 0.1"),
        ("l:\n  a: 1\n  lr:0.1\n  b: 2\n", 3, "lr: 0.1"),
        ("l:\n  a: 1\nb 2 # a seed\n", 3, "b: 2"),
        # the parser joins the first line of a block and the key below it into one text
        ("name ok\nseed: 1\n", 1, "name: ok"),
        ("name ok  # a name\n\nseed: 1\n", 1, "name: ok"),
        ("l:\n  dataset digits\n  model: logistic\n", 2, "dataset: digits"),
        ("l:\n  dataset digits\n  model logistic\n  lr: 1\n", 2, "dataset: digits"),
        ("l:\n  - name x\n    count: 3\n", 2, "name: x"),
        ("l:\n  lr:0.1\n  b: 2\n", 2, "lr: 0.1"),
        ("learning\n  lr: 0.1\n", 1, "learning:"),
        ("a: 1\nlearning\n  lr: 0.1\n", 2, "learning:"),
        ("l:\n  local {batch: 16, lr: 0.05}\n  a: 1\n", 2, "local: {batch: 16, lr: 0.05}"),
        ("l:\n  a: 1\n  local {batch: 16, lr: 0.05}\n", 3, "local: {batch: 16, lr: 0.05}"),
        ("a: 1\nradio {bandwidth_hz: 20e6}\n", 2, "radio: {bandwidth_hz: 20e6}"),
        ("a: 1\nradio{bandwidth_hz: 20e6}\n", 2, "radio: {bandwidth_hz: 20e6}"),
        ("a: 1\nradio {bandwidth_hz: 20e6,\n  preset: x}\n", 2, "radio: {bandwidth_hz: 20e6,"),
        ("a: 1\nareas [x, y]\n", 2, "areas: [x, y]"),
    ],
)
def test_a_key_without_its_colon_is_shown_with_it(
    tmp_path: Path, content: str, line: int, write: str
) -> None:
    said = refusal(tmp_path, content)
    assert said == f"a.yaml:{line}: a key needs a colon and a space after it: write '{write}'"


def test_a_key_in_quotes_may_begin_with_a_bracket(tmp_path: Path) -> None:
    assert read(tmp_path, "'a {b': 1\n") == {"a {b": 1}


def test_what_is_no_file_is_refused(tmp_path: Path) -> None:
    large = saved(tmp_path, b" " * (LARGEST_FILE + 1))
    run = tmp_path / "study" / "plain" / "seed-1"
    run.mkdir(parents=True)
    for file in (run.parents[1] / "study.yaml", run / "run.json"):
        file.write_text("{}")
    for path, message in [
        (run.parents[1], "is a folder; it holds the runs of a study: read them with `edgefl compare`"),
        (tmp_path, "is a folder; give a file: "),
        (tmp_path / "none.yaml", "cannot be read (No such file or directory)"),
        (tmp_path / "a\0b", "cannot be read"),
        (tmp_path / ("x" * 300), "cannot be read (File name too long)"),
        (Path("/dev/zero"), "is larger than 10 MB"),
        (large, "is larger than 10 MB"),
    ]:
        with pytest.raises(EdgeflError) as error:
            Source(path)
        assert message in str(error.value)


def test_byte_order_mark_and_windows_lines(tmp_path: Path) -> None:
    assert read(tmp_path, b"\xef\xbb\xbfa: 1\r\nb: x\r\n") == {"a": 1, "b": "x"}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        *(("20e6", 20e6), ("20.0e+6", 20e6), ("1e-3", 1e-3), (".5", 0.5), ("5.", 5.0), ("-0", 0)),
        *(("20_000_000", 20_000_000), ("+3", 3), ("true", True), ("False", False), ("~", None), ("", None)),
        # strings that YAML 1.1 reads as 8, 90, 31, a date, true and false
        *((text, text) for text in ("010", "08", "1:30", "0x1F", "0b1", "0o17", "2026-13-45", "2026-01-01")),
        *(
            (text, text)
            for text in ("on", "off", "yes", "no", "1__0", "_1", "1_", "01.5", "e5", ".", "-1-", "1e")
        ),
        *(("'010'", "010"), ('"5"', "5"), ("! 5", "5")),
        *((".inf", math.inf), ("-.inf", -math.inf), ("1e999", math.inf)),  # every key refuses these values
        *(("[1, a]", [1, "a"]), ("{a: {b: 1e1}}", {"a": {"b": 10.0}})),
    ],
)
def test_values(text: str, value: Any) -> None:
    found = parse_value(text, "--set x")
    assert (found, type(found)) == (value, type(value))


def test_keys_are_text(tmp_path: Path) -> None:
    assert read(tmp_path, "{1: a, 010: b, true: c, off: d, 2026-01-01: e, 1.0: f, null: g}") == (
        {"1": "a", "010": "b", "true": "c", "off": "d", "2026-01-01": "e", "1.0": "f", "null": "g"}
    )


MERGED = """\
base: &base
  lr: 0.1
  deep: {x: 1}
other: &other {lr: 0.3, steps: 5}
a:
  <<: *base
  lr: 0.2
b:
  <<: [*base, *other]
c: *base
"""


def test_merge_keys_and_aliases(tmp_path: Path) -> None:
    source = Source(saved(tmp_path, MERGED))
    assert source.data["a"] == {"lr": 0.2, "deep": {"x": 1}}
    assert source.data["b"] == {"lr": 0.1, "deep": {"x": 1}, "steps": 5}
    assert source.data["c"] == {"lr": 0.1, "deep": {"x": 1}}
    # the line of a key is the line of its text, also for merged keys
    for place, line in [
        (("a", "lr"), 7),
        (("a", "deep", "x"), 3),
        (("b", "lr"), 2),
        (("b", "steps"), 4),
        (("c", "lr"), 2),
        (("c",), 10),
        (("c", "none"), 10),
    ]:
        assert source.where(place) == f"{source.path}:{line}"
    # an alias is a copy, so an override of it does not change the original
    source.override("c.deep.x", 7, "--set c.deep.x=7")
    assert [source.data[key]["deep"]["x"] for key in ("base", "a", "b", "c")] == [1, 1, 1, 7]
    assert source.where(("c", "deep", "x")) == "--set c.deep.x=7"
    assert source.where(("b", "deep", "x")) == f"{source.path}:3"


def test_an_alias_bomb_is_refused_at_once(tmp_path: Path) -> None:
    levels = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    levels += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 12)]
    began = perf_counter()
    message = refusal(tmp_path, "\n".join(levels))
    assert perf_counter() - began < 1.0
    assert message == "a.yaml:6: aliases expand to more than 100,000 values; use fewer"
    merges = ["m0: &m0 {k0: 1, l0: 2}"]
    merges += [f"m{n}: &m{n} {{k{n}: *m{n - 1}, l{n}: *m{n - 1}}}" for n in range(1, 40)]
    assert "aliases expand to more than 100,000 values" in refusal(tmp_path, "\n".join(merges))
    # each list alone is nested less than 50 levels deep, but one list within the other is not
    deep = [f"b0: &b0 {'[' * 30}{']' * 30}", f"b1: {'[' * 30}*b0{']' * 30}"]
    assert "nested deeper than 50 levels" in refusal(tmp_path, "\n".join(deep))


@pytest.mark.parametrize(
    "text",
    [
        *("1e5", "1E5", "20e-6", "010", "08", "1:30", "10:2:2", "off", "true", "~", "null", "2026-01-01"),
        *(".inf", "<<", "=", "", " x", "a: b", "# x", "9" * 400, "!x", "*x", "&x", "@x", "x\ny", "ü"),
    ],
)
def test_text_survives_being_written(text: str) -> None:
    """Text that is written is read back unchanged, also by readers of YAML 1.1."""
    written = write({"name": text, "list": [text]})
    assert parse_value(written, "") == {"name": text, "list": [text]}
    if text != "9" * 400:
        assert yaml.safe_load(written) == {"name": text, "list": [text]}


def test_numbers_survive_being_written() -> None:
    numbers = [0.1, 1e22, 1e-28, 3.5e9, -0.0, 2**80, 5e-324, True, None]
    found = parse_value(write(numbers), "")
    assert [(each, type(each)) for each in found] == [(each, type(each)) for each in numbers]
    assert write([[1], [1]]) == write([shared := [1], shared])  # no aliases


def test_a_faulty_value_on_the_command_line() -> None:
    for text, message in [
        ("[", "--set x: '[' is not a YAML value: the [ opened in this line is not closed"),
        ("[" * 500, "nested deeper than 50 levels"),
        ("\udcff", "contains the character U+DCFF"),
        ("a: 1\n--- b", "a second document begins here"),
    ]:
        with pytest.raises(EdgeflError) as error:
            parse_value(text, "--set x")
        assert message in str(error.value)
        assert len(str(error.value)) < 250
