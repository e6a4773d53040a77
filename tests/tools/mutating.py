"""Draw mutants of the code with a seed: each replaces an operator, a constant or a bound inside a function."""

import ast
import copy
import hashlib
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import CodeType

import pytest

from tests.faults.injecting import function_at
from tests.tools.isolated import ROOT

FOLDERS = {
    "channel": "channel",
    "engine": "edgefl/engine",
    "learning": "edgefl/learning",
    "analysis": "analysis",
}
COMPARED = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}
CALCULATED = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.Mult,
    ast.Pow: ast.Mult,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
    ast.MatMult: ast.MatMult,
}
NAMES = {
    "min": "max",
    "max": "min",
    "minimum": "maximum",
    "maximum": "minimum",
    "ceil": "floor",
    "floor": "ceil",
}
FACTOR = 1.1  # multiplies a constant that is not an integer


@dataclass(frozen=True)
class Mutant:
    """A change at one place in a module's code.

    Args:
        path: the module's file, relative to the root.
        function: function or method that contains the place.
        what: the expression before and after; numbered if the function contains it more than once.
        line: line of the place.
        number: number of the place among all places in the module.
        is_guard: whether the place is a `strict=`, which only guards against lengths that never differ.
    """

    path: str
    function: str
    what: str
    line: int = 0
    number: int = 0
    is_guard: bool = False

    @property
    def id(self) -> str:
        """The mutant's name in lists, which stays the same until its function changes."""
        return f"{self.path}:{self.function}: {self.what}"

    @property
    def room(self) -> str:
        """The package that contains the module."""
        return next(room for room, folder in FOLDERS.items() if self.path.startswith(f"{folder}/"))

    @property
    def module(self) -> str:
        """The module's name."""
        name = self.path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
        return name if name.startswith("edgefl.") else f"edgefl.{name}"

    def inject(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Replace the code of the mutant's function."""
        tree = ast.parse((ROOT / self.path).read_text())
        _, node = list(_places(tree))[self.number]
        _change(node)
        _, function = function_at(f"{self.module}:{self.function}")
        code = compile(ast.fix_missing_locations(tree), str(ROOT / self.path), "exec", dont_inherit=True)
        here = (function.__code__.co_qualname, function.__code__.co_firstlineno)
        (found,) = (one for one in _codes(code) if (one.co_qualname, one.co_firstlineno) == here)
        monkeypatch.setattr(function, "__code__", found)


def drawn(seed: int, each: int, rooms: Sequence[str] = tuple(FOLDERS)) -> list[Mutant]:
    """Draw the same number of mutants of each package, in turn; a smaller draw is the beginning of a larger one.

    The places with the smallest hashes of seed and name are drawn, so a change of the code affects the draw only in
    the functions that it changes.
    """
    some = []
    for room in rooms:
        files = sorted((ROOT / FOLDERS[room]).rglob("*.py"))
        places = [mutant for file in files for mutant in of_file(file) if not mutant.is_guard]
        some.append(sorted(places, key=lambda place: _turn(seed, place))[:each])
    return [mutant for of_each in zip(*some, strict=True) for mutant in of_each]


def of_file(file: Path) -> list[Mutant]:
    """List all mutants of a file."""
    path, tree = str(file.relative_to(ROOT)), ast.parse(file.read_text())
    guards = {id(one.value) for one in ast.walk(tree) if isinstance(one, ast.keyword) and one.arg == "strict"}
    found, names = [], Counter[str]()
    for number, (function, node) in enumerate(_places(tree)):
        changed = copy.deepcopy(node)
        _change(changed)
        before, after = (ast.unparse(one) for one in (node, changed))
        mutant = Mutant(path, function, f"{before} -> {after}", node.lineno, number, id(node) in guards)
        names[mutant.id] += 1
        if names[mutant.id] > 1:
            mutant = replace(mutant, what=f"{mutant.what} (number {names[mutant.id]})")
        found.append(mutant)
    return found


def _turn(seed: int, mutant: Mutant) -> bytes:
    return hashlib.sha256(f"{seed} {mutant.id}".encode()).digest()


def _places(tree: ast.Module) -> Iterator[tuple[str, ast.expr]]:
    """Yield the expressions in functions that can be changed, except docstrings, messages and annotations."""
    for name, function in _functions(tree, ""):
        for statement in function.body:
            for node in _expressions(statement):
                if _can_change(node):
                    yield name, node


def _functions(node: ast.AST, prefix: str) -> Iterator[tuple[str, ast.FunctionDef]]:
    """Yield a module's functions and methods; a nested function belongs to its enclosing function."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.FunctionDef):
            if not any(
                "overload" in ast.unparse(one) or "abstract" in ast.unparse(one)
                for one in child.decorator_list
            ):
                yield f"{prefix}{child.name}", child
        elif isinstance(child, ast.ClassDef):
            yield from _functions(child, f"{prefix}{child.name}.")


def _expressions(node: ast.AST) -> Iterator[ast.expr]:
    if isinstance(node, ast.Raise | ast.JoinedStr | ast.Assert):
        return
    if isinstance(node, ast.expr):
        yield node
    left_out = (
        {"annotation", "returns", "decorator_list", "slice"}
        if isinstance(node, ast.AnnAssign | ast.FunctionDef)
        else set()
    )
    for field, value in ast.iter_fields(node):
        if field in left_out:
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST):
                yield from _expressions(child)


def _can_change(node: ast.expr) -> bool:
    match node:
        case ast.Constant(value=bool() | int() | float()):
            return True
        case ast.Compare(ops=[only]):
            return type(only) in COMPARED
        case ast.BinOp(op=op, left=left):
            text = isinstance(left, ast.Constant) and isinstance(left.value, str)
            return type(op) in CALCULATED and not isinstance(op, ast.MatMult) and not text
        case ast.BoolOp() | ast.UnaryOp(op=ast.Not()) | ast.UnaryOp(op=ast.USub(), operand=ast.Name()):
            return True
        case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name)):
            return name in NAMES
    return False


def _change(node: ast.expr) -> None:
    """Change an expression into its mutant."""
    match node:
        case ast.Constant(value=bool() as value):
            node.value = not value
        case ast.Constant(value=int() as value):
            node.value = value + 1
        case ast.Constant(value=float() as value):
            node.value = value * FACTOR or 1.0
        case ast.Compare():
            node.ops = [COMPARED[type(node.ops[0])]()]
        case ast.BinOp():
            node.op = CALCULATED[type(node.op)]()
        case ast.BoolOp():
            node.op = ast.Or() if isinstance(node.op, ast.And) else ast.And()
        case ast.UnaryOp(op=ast.Not()):
            node.operand = ast.UnaryOp(ast.Not(), node.operand)
        case ast.UnaryOp():
            node.op = ast.UAdd()
        case ast.Call(func=ast.Name() as name):
            name.id = NAMES[name.id]
        case ast.Call(func=ast.Attribute() as name):
            name.attr = NAMES[name.attr]


def _codes(code: CodeType) -> Iterator[CodeType]:
    for one in code.co_consts:
        if isinstance(one, CodeType):
            yield one
            yield from _codes(one)
