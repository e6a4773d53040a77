"""Read YAML text as a tree of values with line numbers; the syntax of numbers is strict, and nothing is executed.

The reader supports what a settings file needs: mappings with plain keys, lists, text, true and false, null, decimal
numbers, anchors, aliases and merge keys. Values that YAML 1.1 reads in a surprising way (010 as 8, 1:30 as 90, off as
false, 2026-01-01 as a date) are text, as in YAML 1.2; where a number or a choice is expected, text is rejected with
an error that says what to write.
"""

import re
from dataclasses import dataclass, field
from typing import Any

import yaml
from yaml.reader import Reader

from edgefl.config.yaml_faults import BRACKET, colon_missing, explain
from edgefl.errors import quoted

DEEPEST = 50  # maximum number of levels of nesting
MOST_UNFOLDED = 100_000  # maximum number of values to which all aliases together may expand
LONGEST_NUMBER = 300  # maximum length of a number in characters; no setting needs more

_INTEGER = re.compile(r"[-+]?(0|[1-9]\d*(_\d+)*)")
_FLOAT = re.compile(r"[-+]?((0|[1-9]\d*(_\d+)*)(\.\d*)?|\.\d+)([eE][-+]?\d+)?")
_CONSTANTS: dict[str, Any] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
    **{f"{sign}.{inf}": float(f"{sign}inf") for sign in ("", "+", "-") for inf in ("inf", "Inf", "INF")},
    **dict.fromkeys((".nan", ".NaN", ".NAN"), float("nan")),
}


class FaultyText(Exception):
    """An error raised at a fault in YAML text, with the fault's line."""

    def __init__(self, line: int, message: str) -> None:
        super().__init__(line, message)
        self.line = line
        self.message = message


@dataclass
class Node:
    """A value in YAML text, either a scalar, or a mapping or list with children by key or index.

    lines: each child's key -> its line. size, height: number of values and levels, with aliases expanded.
    """

    line: int
    scalar: Any = None
    kind: type = str
    children: dict[str, "Node"] = field(default_factory=dict)
    lines: dict[str, int] = field(default_factory=dict)
    size: int = 1
    height: int = 0

    def __deepcopy__(self, memo: Any) -> "Node":
        return self  # nodes are not changed after they are read

    def data(self) -> Any:
        """Return the value as new dicts and lists, copied for each alias."""
        if self.kind is dict:
            return {key: child.data() for key, child in self.children.items()}
        if self.kind is list:
            return [child.data() for child in self.children.values()]
        return self.scalar

    def add(self, key: str, child: "Node", line: int) -> None:
        self.children[key] = child
        self.lines[key] = line
        self.size += child.size
        self.height = max(self.height, child.height + 1)


def read(text: str) -> Node | None:
    """Read YAML text as a tree of values; return None if the text is empty.

    Raises:
        FaultyText: the text is not a single YAML document of the supported kind.
    """
    odd = Reader.NON_PRINTABLE.search(text)
    if odd:
        line = text.count("\n", 0, odd.start()) + 1
        raise FaultyText(line, f"contains the character {_name(odd.group())}, which is not text; delete it")
    loader = yaml.SafeLoader(text)
    try:
        return _Composer(loader, text).document()
    finally:
        loader.dispose()


def scalar(text: str) -> Any:
    """Return the value of an unquoted YAML scalar: a number, true or false, None, or text.

    Raises:
        ValueError: the number is too long.
    """
    if text in _CONSTANTS:
        return _CONSTANTS[text]
    number: type = int if _INTEGER.fullmatch(text) else float
    if number is float and not _FLOAT.fullmatch(text):
        return text
    if len(text) > LONGEST_NUMBER:
        raise ValueError(f"a number is {len(text)} characters long, {quoted(text)}")
    return number(text)


class _Composer:
    """Build the tree of values from the events of PyYAML's parser."""

    def __init__(self, loader: yaml.SafeLoader, text: str) -> None:
        self._loader = loader
        self._text = text
        self._last: yaml.ScalarEvent | None = None  # the last part of the text, if it is a scalar
        self._anchors: dict[str, Node | None] = {}  # anchor -> value, or None while the value is incomplete
        self._unfolded = 0

    def document(self) -> Node | None:
        self._next()  # skip the event of the stream's start
        if isinstance(self._next(), yaml.StreamEndEvent):
            return None
        root = self._node(self._next(), 0)
        self._next()  # skip the event of the document's end
        further = self._next()
        if not isinstance(further, yaml.StreamEndEvent):
            raise _fault(further, "a second document begins here (---); a file holds one")
        return root if root.scalar is not None or root.kind in (dict, list) else None

    def _next(self) -> yaml.Event:
        try:
            event: yaml.Event = self._loader.get_event()
        except (yaml.YAMLError, ValueError, OverflowError) as error:
            # ValueError, OverflowError: a number in an escape or version is out of range
            raise FaultyText(*explain(error, self._text, self._loader, self._last)) from error
        if not isinstance(event, yaml.DocumentEndEvent):
            self._last = event if isinstance(event, yaml.ScalarEvent) else None
        return event

    def _node(self, event: yaml.Event, depth: int) -> Node:
        if isinstance(event, yaml.AliasEvent):
            return self._alias(event, depth)
        assert isinstance(event, yaml.ScalarEvent | yaml.CollectionStartEvent)
        if event.anchor in self._anchors:
            raise _fault(event, f"the anchor {quoted(event.anchor)} is given twice")
        if event.anchor is not None:
            self._anchors[event.anchor] = None
        if isinstance(event, yaml.ScalarEvent):
            node = _scalar(event)
        elif depth == DEEPEST:
            raise _fault(event, f"nested deeper than {DEEPEST} levels")
        elif isinstance(event, yaml.MappingStartEvent):
            node = self._mapping(event, depth)
        else:
            node = self._sequence(event, depth)
        if event.anchor is not None:
            self._anchors[event.anchor] = node
        return node

    def _alias(self, event: yaml.AliasEvent, depth: int) -> Node:
        name = event.anchor or ""
        node = self._anchors.get(name)
        if node is None:
            why = "has no anchor above it; put text in quotes"
            if name in self._anchors:
                why = "is inside the value of its own anchor"
            raise _fault(event, f"the alias {quoted('*' + name)} {why}")
        self._unfolded += node.size
        if self._unfolded > MOST_UNFOLDED:
            raise _fault(event, f"aliases expand to more than {MOST_UNFOLDED:,} values; use fewer")
        if depth + node.height > DEEPEST:
            raise _fault(event, f"nested deeper than {DEEPEST} levels")
        return node

    def _sequence(self, start: yaml.CollectionStartEvent, depth: int) -> Node:
        node = _collection(start, list)
        while not isinstance(event := self._next(), yaml.SequenceEndEvent):
            line = _line(event)
            node.add(str(len(node.children)), self._node(event, depth + 1), line)
        return node

    def _mapping(self, start: yaml.CollectionStartEvent, depth: int) -> Node:
        node, merged = _collection(start, dict), Node(0)
        first: dict[str, int] = {}
        while not isinstance(event := self._next(), yaml.MappingEndEvent):
            key, line = _key(event), _line(event)
            plain = isinstance(event, yaml.ScalarEvent) and not event.style
            if plain and BRACKET.match(key):  # `radio {bandwidth_hz: 20e6}`
                raise FaultyText(line, colon_missing(self._text.splitlines()[line - 1]))
            if key in first:
                raise FaultyText(line, f"{quoted(key)} is given twice, first on line {first[key]}")
            first[key] = line
            value = self._next()
            if plain and key == "<<":
                for source in self._merge_sources(value, depth):
                    for name, child in source.children.items():
                        if name not in merged.children:
                            merged.add(name, child, source.lines[name])
                continue
            node.add(key, self._node(value, depth + 1), line)
        return _under(merged, node) if merged.children else node

    def _merge_sources(self, event: yaml.Event, depth: int) -> list[Node]:
        """Return the mappings that a merge key `<<` names, in order of precedence."""
        node = self._node(event, depth)
        sources = list(node.children.values()) if node.kind is list else [node]
        if any(source.kind is not dict for source in sources):
            raise _fault(event, "<< needs a mapping, or a list of mappings")
        return sources


def _under(merged: Node, node: Node) -> Node:
    """Return a mapping's node with merged children added in front, except for keys that the node itself has."""
    whole = Node(node.line, kind=dict)
    for key, child in {**merged.children, **node.children}.items():
        whole.add(key, child, (node if key in node.children else merged).lines[key])
    return whole


def _collection(event: yaml.CollectionStartEvent, kind: type) -> Node:
    _refuse_tag(event)
    return Node(_line(event), kind=kind)


def _scalar(event: yaml.ScalarEvent) -> Node:
    _refuse_tag(event)
    _check_characters(event)
    if event.tag or not event.implicit[0]:  # a scalar in quotes is text
        return Node(_line(event), event.value)
    try:
        return Node(_line(event), scalar(event.value))
    except ValueError as error:
        raise _fault(event, str(error)) from error


def _key(event: yaml.Event) -> str:
    if not isinstance(event, yaml.ScalarEvent) or event.tag not in (None, "!"):
        raise _fault(event, "a key must be a plain word or number; put text with brackets, * or ! in quotes")
    if not event.style and event.value in ("", "~"):
        raise _fault(event, "a key is missing before the colon")
    _check_characters(event)
    return str(event.value)


def _check_characters(event: yaml.ScalarEvent) -> None:
    odd = Reader.NON_PRINTABLE.search(event.value)  # a character that an escape such as "\0" produced
    if odd:
        raise _fault(
            event, f"{quoted(event.value)} contains the character {_name(odd.group())}, which is not text"
        )


def _refuse_tag(event: yaml.ScalarEvent | yaml.CollectionStartEvent) -> None:
    if event.tag not in (None, "!"):
        write = "write the plain value, in quotes if it begins with '!'"
        raise _fault(event, f"the tag {quoted(event.tag)} is not supported; {write}")


def _fault(event: yaml.Event, message: str) -> FaultyText:
    return FaultyText(_line(event), message)


def _line(event: yaml.Event) -> int:
    return event.start_mark.line + 1 if event.start_mark else 1


def _name(character: str) -> str:
    return f"U+{ord(character):04X}"
