"""Check first lines of docstrings, and subjects of commits, as far as possible; CONTRIBUTING.md has the rules."""

import ast
import re
from pathlib import Path

import pytest
import yaml

pytestmark = pytest.mark.always  # never marked `nightly`

ROOT = Path(__file__).parents[2]
FILES = [file for name in ("edgefl", "channel", "analysis") for file in sorted((ROOT / name).rglob("*.py"))]
TRANSLATED = re.compile(
    r"\b(who|whom|whoever|whose|nobody|somebody|anybody|so many|of which|else|is told|is said|anew|at hand)\b|None:",
    re.I,
)

HOOKS = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text())["repos"]
(SUBJECT,) = (hook["entry"] for repo in HOOKS for hook in repo["hooks"] if hook["id"] == "commit-subject")


# folders and pages that a wheel lacks, and "edgefl: note:", as notes have a single, different format
UNSHOWABLE = re.compile(r"(?<![\w/.])(docs|tests|research)/|CONTRIBUTING|CHANGELOG|edgefl: note:")


def shown_texts(file: Path) -> list[str]:
    """Return the strings of a module that users see, including docstrings of classes and of commands."""
    nodes = list(ast.walk(ast.parse(file.read_text())))
    hidden = ast.Module | ast.FunctionDef if "commands" not in file.parts else ast.Module
    skip = {node.body[0].value for node in nodes if isinstance(node, hidden) and ast.get_docstring(node)}
    texts = (node.value for node in nodes if isinstance(node, ast.Constant) and node not in skip)
    return [text for text in texts if isinstance(text, str)]


def test_no_shown_text_points_to_a_file_that_a_wheel_lacks() -> None:
    found = [(file.name, text) for file in FILES for text in shown_texts(file) if UNSHOWABLE.search(text)]
    assert found == []


def first_lines(file: Path) -> list[str]:
    """Return the first paragraph of each docstring of a module, on one line."""
    documented = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
    nodes = [node for node in ast.walk(ast.parse(file.read_text())) if isinstance(node, documented)]
    texts = [text for node in nodes if (text := ast.get_docstring(node))]
    return [" ".join(text.split("\n\n")[0].split()) for text in texts]


def test_first_lines_say_what_a_thing_does() -> None:
    found = [
        f"{file.relative_to(ROOT)}: {line}"
        for file in FILES
        for line in first_lines(file)
        if TRANSLATED.search(line)
    ]
    assert found == []


@pytest.mark.parametrize(
    ("subject", "good"),
    [
        ("Remove unused World.seats", True),
        ("Feed the decoder's state back", True),
        ("Bring tests of codecs into the contract", True),
        ("Count tails in energy_aware\n\nA battery pays them.\n", True),
        ("Removed unused World.seats", False),
        ("Removing unused World.seats", False),
        ("remove unused World.seats", False),
        ("Remove unused World.seats.", False),
        ("Remove", False),
        ("Remove " + "x" * 66, False),
        ("Said once: one loop over the blocks of fading, one median of a job's time", False),
    ],
)
def test_a_subject_is_one_short_imperative_line(subject: str, good: bool) -> None:
    assert (re.search(SUBJECT, subject) is not None) == good
