"""YAML with line numbers, dotted overrides, and errors that name the place and the remedy."""

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import yaml
from pydantic import BaseModel, ValidationError

from edgefl.errors import EdgeflError
from edgefl.registry import did_you_mean

Place = tuple[str, ...]
Model = TypeVar("Model", bound=BaseModel)


class _Loader(yaml.SafeLoader):
    """SafeLoader that also reads 20e6 as a number (YAML 1.1 wants 20.0e+6) and rejects a key given twice."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen = set()
        for key_node, _ in node.value:
            key = self.construct_object(key_node, deep=True)
            if key in seen:
                raise yaml.constructor.ConstructorError(
                    None, None, f"'{key}' is given twice", key_node.start_mark
                )
            seen.add(key)
        return super().construct_mapping(node, deep)


_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:float",
    re.compile(r"^[-+]?(\d[\d_]*)(\.[\d_]*)?[eE][-+]?\d+$"),
    list("-+0123456789"),
)


class Source:
    """A YAML document, the line of every key in it, and overrides applied on top."""

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            text = path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise EdgeflError(f"{path}: cannot be read ({error}); check the path") from error
        try:
            loader = _Loader(text)
            node = loader.get_single_node()
            self.data: Any = loader.construct_document(node) if node else {}
        except yaml.MarkedYAMLError as error:
            mark = error.problem_mark or error.context_mark
            line = f":{mark.line + 1}" if mark else ""
            raise EdgeflError(f"{path}{line}: {error.problem or 'not valid YAML'}") from error
        if not isinstance(self.data, dict):
            raise EdgeflError(f"{path}:1: a mapping of keys to values is expected")
        self._lines: dict[Place, int] = {(): 1}
        self._overrides: dict[Place, str] = {}
        if node:
            self._note_lines(node, ())

    def _note_lines(self, node: yaml.Node, place: Place) -> None:
        if isinstance(node, yaml.MappingNode):
            for key, value in node.value:
                self._lines[(*place, str(key.value))] = key.start_mark.line + 1
                self._note_lines(value, (*place, str(key.value)))
        elif isinstance(node, yaml.SequenceNode):
            for number, value in enumerate(node.value):
                self._lines[(*place, str(number))] = value.start_mark.line + 1
                self._note_lines(value, (*place, str(number)))

    def override(self, dotted: str, value: Any, origin: str) -> None:
        """Set one dotted key; `origin` names it in errors, e.g. `--set learning.lr=0.1`."""
        place = tuple(dotted.split("."))
        if not all(place):
            raise EdgeflError(f"{origin}: '{dotted}' is not a dotted key such as learning.algorithm.mu")
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
                raise EdgeflError(f"{origin}: '{part}' holds {inner!r} and has no keys below it")
            target[part] = inner
            target = inner
        target[place[-1]] = value
        # what stood below the key is gone: errors there are the override's
        for known in (self._lines, self._overrides):
            for below in [other for other in known if other[: len(place)] == place]:
                del known[below]
        self._overrides[place] = origin

    def where(self, place: Place) -> str:
        """Return where a key was set: `file.yaml:14`, or the override's origin."""
        for length in range(len(place), -1, -1):
            if place[:length] in self._overrides:
                return self._overrides[place[:length]]
            if place[:length] in self._lines:
                return f"{self.path}:{self._lines[place[:length]]}"
        return str(self.path)

    def error(self, place: Place, message: str) -> EdgeflError:
        """Make an error at a key of this document."""
        return EdgeflError(f"{self.where(place)} {'.'.join(place)}: {message}")

    def validate(self, model: type[Model]) -> Model:
        """Validate the document against a model.

        Raises:
            EdgeflError: one line for each wrong key, with file, line and remedy.
        """
        try:
            return model.model_validate(self.data)
        except ValidationError as error:
            lines = [self.error(place, text) for place, text in _flatten(error.errors(), model)]
            raise EdgeflError("\n".join(str(line) for line in lines)) from error


def parse_value(text: str, origin: str) -> Any:
    """Parse the YAML value of an override such as `20e6`, `true` or `{name: fedprox, mu: 0.1}`."""
    try:
        return yaml.load(text, Loader=_Loader)  # a SafeLoader
    except yaml.YAMLError as error:
        raise EdgeflError(f"{origin}: '{text}' is not a YAML value") from error


def _flatten(errors: Iterable[Any], model: type[BaseModel] | None) -> list[tuple[Place, str]]:
    """Flatten pydantic's errors, and those of nested components, to (place, message)."""
    messages: list[tuple[Place, str]] = []
    for error in errors:
        place = tuple(str(part) for part in error["loc"])
        context: Mapping[str, Any] = error.get("ctx", {})
        if error["type"] == "component":
            inner = _flatten(context["errors"], context["model"])
            messages += [((*place, *inner_place), text) for inner_place, text in inner]
        else:
            # a check of the whole document names the key itself
            place = place or getattr(context.get("error"), "place", ())
            messages.append((place, _message(error, place, model)))
    return messages


def _message(error: Mapping[str, Any], place: Place, model: type[BaseModel] | None) -> str:
    parent = _model_at(model, place[:-1])
    if error["type"] == "extra_forbidden":
        known = sorted(parent.model_fields) if parent else []
        return f"unknown key{did_you_mean(place[-1], known)}" if known else "this takes no parameters"
    if error["type"] == "missing":
        return "is missing; add it"
    if error["type"] == "value_error":
        return str(error["ctx"]["error"])
    text = str(error["msg"]).replace("Input should be", "must be")
    text = text.replace("greater than or equal to", ">=").replace("less than or equal to", "<=")
    text = text.replace("greater than", ">").replace("less than", "<")
    text = f"{text}, got {error['input']!r}"
    field = parent.model_fields.get(place[-1]) if parent and place else None
    return f"{text} ({field.description})" if field and field.description else text


def _model_at(model: type[BaseModel] | None, place: Sequence[str]) -> type[BaseModel] | None:
    for part in place:
        field = model.model_fields.get(part) if model else None
        annotation = field.annotation if field else None
        candidates = [annotation, *getattr(annotation, "__args__", ())]
        model = next((c for c in candidates if isinstance(c, type) and issubclass(c, BaseModel)), None)
    return model
