"""Inject faults into loaded code, by replacing a fragment of a function's source, or a constant.

The function's code object is replaced, so that every reference to the function has the fault: names imported by
`from x import f`, methods in tables, bound methods.
"""

import ast
import importlib
import inspect
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any

import pytest

Inject = Callable[[pytest.MonkeyPatch], None]


def edited(where: str, old: str, new: str) -> Inject:
    """Make a fault that replaces a fragment of the source of `module:name` or `module:Class.name`.

    Args:
        old: the fragment, which must occur exactly once in the function's source.
    """

    def inject(monkeypatch: pytest.MonkeyPatch) -> None:
        module, function = function_at(where)
        source = Path(inspect.getsourcefile(module) or "").read_text()
        first, last = lines_of(source, function)
        lines = source.splitlines(keepends=True)
        body = "".join(lines[first:last])
        if body.count(old) != 1:
            raise LookupError(f"{where}: {old!r} occurs {body.count(old)} times")
        changed = "".join(lines[:first]) + body.replace(old, new) + "".join(lines[last:])
        exchange(monkeypatch, module, function, ast.parse(changed))

    return inject


def constant(where: str, value: object) -> Inject:
    """Make a fault that replaces a constant `module:NAME` or `module:Class.name` in all modules that import it."""

    def inject(monkeypatch: pytest.MonkeyPatch) -> None:
        name, _, path = where.partition(":")
        owner: Any = importlib.import_module(name)
        *outer, last = path.split(".")
        for part in outer:
            owner = getattr(owner, part)
        held = getattr(owner, last)
        monkeypatch.setattr(owner, last, value)
        if not outer:
            for module in ours():
                if last in vars(module) and vars(module)[last] is held:
                    monkeypatch.setattr(module, last, value)

    return inject


def function_at(where: str) -> tuple[ModuleType, FunctionType]:
    """Find the function `module:name` below its decorators."""
    name, _, path = where.partition(":")
    module = importlib.import_module(name)
    found: Any = module
    for part in path.split("."):
        found = inspect.getattr_static(found, part)
    while not isinstance(found, FunctionType):
        for below in ("fget", "__func__", "func", "__wrapped__"):
            if hasattr(found, below):
                found = getattr(found, below)
                break
        else:
            raise LookupError(f"{where} is not a function but {found!r}")
    return module, inspect.unwrap(found)


def lines_of(source: str, function: FunctionType) -> tuple[int, int]:
    """Return a function's lines, decorators included: the first line, and the line after the last."""
    first = function.__code__.co_firstlineno
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            begins = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
            if begins == first and node.name == function.__name__:
                return first - 1, node.end_lineno or first
    raise LookupError(f"no function {function.__qualname__} begins in line {first}")


def exchange(
    monkeypatch: pytest.MonkeyPatch, module: ModuleType, function: FunctionType, changed: ast.Module
) -> None:
    """Replace a function's code by its code in the changed module."""
    code = compile(changed, str(inspect.getsourcefile(module)), "exec", dont_inherit=True)
    here = (function.__code__.co_qualname, function.__code__.co_firstlineno)
    (found,) = (one for one in _codes(code) if (one.co_qualname, one.co_firstlineno) == here)
    monkeypatch.setattr(function, "__code__", found)


def ours() -> list[ModuleType]:
    """List the loaded modules of this project."""
    return [module for name, module in list(sys.modules.items()) if name.partition(".")[0] == "edgefl"]


def _codes(code: CodeType) -> Iterator[CodeType]:
    for one in code.co_consts:
        if isinstance(one, CodeType):
            yield one
            yield from _codes(one)
