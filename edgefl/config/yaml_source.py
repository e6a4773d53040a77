"""Read YAML files with line numbers, apply dotted overrides, and raise errors with place and remedy."""

import copy
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar

import yaml
from pydantic import BaseModel, ValidationError

from edgefl.config import outside
from edgefl.config.error_messages import Place, dotted, flat, in_short
from edgefl.config.yaml_nodes import DEEPEST, FaultyText, Node, read, scalar
from edgefl.errors import LONGEST_PATH, EdgeflError, clipped, near_path, quoted

Model = TypeVar("Model", bound=BaseModel)
LARGEST_FILE = 10_000_000  # bytes; a typical settings file has a few hundred bytes
MOST_FILES = 5  # maximum number of a folder's files in a message


class Source:
    """A YAML document with the line of every key, and with overrides of individual keys."""

    def __init__(self, path: Path) -> None:
        self.path = path
        text = _text(path)
        try:
            node = read(text)
        except FaultyText as fault:
            raise EdgeflError(f"{path}:{fault.line}: {fault.message}") from fault
        if node is None:
            raise EdgeflError(
                f"{path}:1: is empty; a mapping of keys to values is expected (`edgefl new` writes one to start from)"
            )
        if node.kind is not dict:
            raise EdgeflError(f"{path}:{node.line}: a mapping of keys to values is expected")
        self._node = node
        self.data: dict[str, Any] = node.data()
        self._overrides: dict[Place, str] = {}

    @classmethod
    def of(cls, data: Mapping[str, Any]) -> "Source":
        """Make a document from data that were not read from a file; its errors name keys, but no file or line."""
        source = cls.__new__(cls)
        source.path, source._node = Path("scenario"), Node(0, kind=dict)
        source.data, source._overrides = _plain_copy(data), {}
        return source

    @property
    def folder(self) -> Path | None:
        """The folder of the document's file, searched for files that the document names; None without a file."""
        return self.path.parent if self._node.line else None

    def override(self, dotted: str, value: Any, origin: str) -> None:
        """Set one dotted key; `origin` names the setting in errors, e.g. `--set learning.local.lr=0.1`."""
        place = tuple(dotted.split("."))
        if not all(place) or len(place) > DEEPEST:
            raise EdgeflError(f"{origin}: {quoted(dotted)} is not a dotted key such as learning.algorithm.mu")
        target = self.data
        for depth, part in enumerate(place[:-1], start=1):
            inner = target.get(part)
            if part not in target:
                self._overrides[place[:depth]] = origin
            if isinstance(inner, str):
                inner = {"name": inner}  # `algorithm: fedprox` is short for `algorithm: {name: fedprox}`
            elif inner is None:
                inner = {}
            elif not isinstance(inner, dict):
                raise EdgeflError(f"{origin}: {quoted(part)} is {quoted(inner)} and has no keys below it")
            target[part] = inner
            target = inner
        # a copy, so that later overrides of keys below do not change the caller's value
        target[place[-1]] = copy.deepcopy(value)
        # this override replaces earlier overrides of keys below this one
        for below in [other for other in self._overrides if other[: len(place)] == place]:
            del self._overrides[below]
        self._overrides[place] = origin

    def where(self, place: Place) -> str:
        """Return the place where a key was set: `file.yaml:14`, or the origin of the override that set it.

        The place of a section begins with the overrides of the section's keys, if there are any.
        """
        for length in range(len(place), -1, -1):
            if place[:length] in self._overrides:
                return self._overrides[place[:length]]
        line, node = 1, self._node
        for part in place:
            if part not in node.children:
                break
            line, node = node.lines[part], node.children[part]
        below = [origin for key, origin in self._overrides.items() if place and key[: len(place)] == place]
        place_in_file = f"{self.path}:{line if self._node.line else ''}"
        # an override is the more likely cause, so it comes first
        return f"{' '.join(below)} (on {place_in_file})" if below else place_in_file

    def error(self, place: Place, message: str) -> EdgeflError:
        """Return an error about a key of this document, with the place where the key was set."""
        where = f"{self.where(place)} {dotted(place)}" if place else self.where(place).removesuffix(":")
        return EdgeflError(f"{where}: {message}")

    def validate(self, model: type[Model]) -> Model:
        """Validate the document against a pydantic model, and return the model's instance.

        Raises:
            EdgeflError: keys are wrong; the message has a line for each, with place and remedy, and is cut if long.
        """
        try:
            return model.model_validate(self.data)
        except ValidationError as error:
            for inner in error.errors():
                outside.pass_on(inner.get("ctx", {}).get("error"))
            faults = flat(error.errors(include_url=False), model, root=model)
            lines = (str(self.error(fault.place, fault.message())) for fault in faults)
            raise EdgeflError(in_short(lines, len(faults))) from error


def _plain_copy(data: Any) -> Any:
    """Copy nested dicts and lists, so that overrides do not change the caller's data."""
    if isinstance(data, Mapping):
        return {str(key): _plain_copy(value) for key, value in data.items()}
    return [_plain_copy(each) for each in data] if isinstance(data, list | tuple) else data


def parse_value(text: str, origin: str) -> Any:
    """Parse the value of an override as YAML, such as `20e6`, `true` or `{name: fedprox, mu: 0.1}`."""
    try:
        node = read(text)
    except FaultyText as fault:
        raise EdgeflError(f"{origin}: {quoted(text)} is not a YAML value: {fault.message}") from fault
    return node.data() if node else None


def assignment(text: str) -> tuple[str, str, Any]:
    """Read an override `dotted.key=value`; return its origin, for messages, the key, and the parsed value."""
    key, equals, value = text.partition("=")
    origin = f"--set {clipped(text)}"
    if not equals:
        raise EdgeflError(f"{origin}: write --set KEY=VALUE, e.g. --set learning.local.lr=0.05")
    return origin, key.strip(), parse_value(value, origin)


def write(data: Any) -> str:
    """Return data as YAML text from which both `read` and YAML 1.1 (PyYAML) restore the same data."""
    return yaml.dump(data, Dumper=Dumper, sort_keys=False)


class Dumper(yaml.SafeDumper):
    """A YAML writer that also quotes text such as 1e5, which `read` interprets as a number but PyYAML does not."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


def _quoted_text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    looks_like_text = isinstance(_plain(text), str)
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=None if looks_like_text else "'")


def _plain(text: str) -> Any:
    try:
        return scalar(text)
    except ValueError:
        return None  # a number with too many digits must be quoted, too


Dumper.add_representer(str, _quoted_text)


def _text(path: Path) -> str:
    try:
        with path.open("rb") as file:
            raw = file.read(LARGEST_FILE + 1)
    except (OSError, ValueError) as error:  # a path with a NUL raises a ValueError
        if isinstance(error, IsADirectoryError):
            inside = sorted(path.glob("*.yaml"))[:MOST_FILES]
            remedy = f"give a file: {', '.join(map(str, inside))}"
            if not inside:
                remedy = "it holds no .yaml file: give a scenario's file"
            elif inside == [path / "study.yaml"] and any(path.rglob("run.json")):
                remedy = (
                    "it holds the runs of a study: read them with `edgefl compare`, or continue the study by"
                    " `edgefl study` with the study's own file"
                )
            raise EdgeflError(f"{clipped(str(path), LONGEST_PATH)}: is a folder; {remedy}") from error
        why = getattr(error, "strerror", None) or error
        hint = near_path(path) if isinstance(error, FileNotFoundError) else ""
        raise EdgeflError(
            f"{clipped(str(path), LONGEST_PATH)}: cannot be read ({why}){hint or '; check the path'}"
        ) from error
    if len(raw) > LARGEST_FILE:
        raise EdgeflError(
            f"{path}: is larger than {LARGEST_FILE // 10**6} MB, so it is not a scenario or study"
        )
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise EdgeflError(
            f"{path}:{line}: contains the byte 0x{raw[error.start]:02x}, which is not UTF-8; save the file as UTF-8"
        ) from error
