"""Hash the code of the user's own components, since a run with edited code is a different run.

The hash covers the module's source and the modules that it imports from the same folder or package, wherever they are
imported. For a module of an installed distribution the hash covers only name and version. The hash does not cover
data that the code reads, or modules in other folders.
"""

import ast
import hashlib
import re
import sys
import sysconfig
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any
from weakref import WeakKeyDictionary

LENGTH = 16  # hexadecimal digits of a hash; a million versions collide with probability 3e-8
OURS = "edgefl"
INSTALLED = {"site-packages", "dist-packages"}  # names of these folders in any environment, virtual or not
_NAMED = re.compile(r"([A-Za-z_][\w.]*):([A-Za-z_]\w*)")
# class or function -> hash of its code when first seen: the file may have been edited since the import
_seen: WeakKeyDictionary[Any, str] = WeakKeyDictionary()


def named_in(values: Iterable[Any]) -> dict[str, str]:
    """Return module -> hash for the components that a scenario's values name as `module:Class`."""
    parts = {}
    for value in _texts(values):
        match = _NAMED.fullmatch(value)
        module = sys.modules.get(match[1]) if match else None
        if match and module is not None and not is_ours(match[1]):
            part = getattr(module, match[2], None)
            parts[match[1]] = of_part(part) if callable(part) else _of_module(module)
    return parts


def of_learner(learner: Any) -> dict[str, str]:
    """Return module -> hash for a user's learner or its factory, and for its `own_parts`."""
    parts = () if learner is None else (learner, *getattr(learner, "own_parts", ()))
    return {part.__module__: of_part(part) for part in map(_defined, parts) if not is_ours(part.__module__)}


def name_of(learner: Any) -> str:
    """Return the name of a learner, or of its factory, as in run.json: module:Class or module:function."""
    part = _defined(learner)
    return f"{part.__module__}:{part.__qualname__}"


def _defined(part: Any) -> Any:
    """Return an object if it is a class or function, and otherwise the object's class."""
    return part if hasattr(part, "__qualname__") else type(part)


def of_part(part: Any) -> str:
    """Return the hash of the code of a class or function, computed once."""
    if part not in _seen:
        module = sys.modules[part.__module__]
        _seen[part] = _of_module(module) if getattr(module, "__file__", None) else _hash(_compiled(part))
    return _seen[part]


def is_ours(module_name: str) -> bool:
    """Return whether a module belongs to edgefl; the version of results identifies edgefl's own code."""
    return module_name.partition(".")[0] == OURS


def _texts(values: Iterable[Any]) -> Iterator[str]:
    for value in values:
        if isinstance(value, str):
            yield value
        elif isinstance(value, dict):
            yield from _texts(value.values())
        elif isinstance(value, list | tuple):
            yield from _texts(value)


def _of_module(module: ModuleType) -> str:
    if getattr(module, "__file__", None) is None:  # a built-in module has no file
        return _distribution(module.__name__)
    file = Path(str(module.__file__)).resolve()
    if any(file.is_relative_to(folder) for folder in _installed()) or not INSTALLED.isdisjoint(file.parts):
        return _distribution(module.__name__)
    depth = module.__name__.count(".") + (file.name == "__init__.py")
    root = file.parents[depth] if module.__name__ != "__main__" else file.parent
    return _hash(
        piece
        for source in sorted(_closure(file, root))
        for piece in (str(source.relative_to(root)).encode(), source.read_bytes())
    )


def _closure(file: Path, root: Path) -> set[Path]:
    """Return a module's source file and the files below `root` that the module imports, directly or indirectly."""
    sources: set[Path] = set()
    waiting = [file]
    while waiting:
        source = waiting.pop()
        if source not in sources and source.suffix == ".py":
            sources.add(source)
            waiting += [each for name in _imports(source, root) for each in _files(name, root)]
    return sources


def _imports(source: Path, root: Path) -> Iterator[str]:
    """Yield the dotted names that a source file imports; `from a import b` yields a.b, even if b is not a module."""
    try:
        tree = ast.parse(source.read_bytes())
    except SyntaxError:  # not an error, since the file may never be imported
        return
    package = source.parent.relative_to(root).parts
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = package[: len(package) + 1 - node.level] if node.level else ()
            base = ".".join([*above, *([node.module] if node.module else [])])
            yield from (f"{base}.{alias.name}" if base else alias.name for alias in node.names)


def _files(name: str, root: Path) -> Iterator[Path]:
    """Yield the files below `root` that run when a dotted name is imported, packages before their modules."""
    parts = name.split(".")
    if is_ours(parts[0]):
        return
    for many in range(1, len(parts) + 1):
        path = root.joinpath(*parts[:many])
        for file in (path / "__init__.py", path.with_name(f"{path.name}.py")):
            if file.is_file():
                yield file.resolve() if file.resolve().is_relative_to(root) else file


@cache
def _installed() -> tuple[Path, ...]:
    """Return the folders of installed packages and of Python's standard library."""
    return tuple(Path(sysconfig.get_path(name)).resolve() for name in ("purelib", "platlib", "stdlib"))


def _distribution(module_name: str) -> str:
    """Return name and version of the distribution that installed a module, or of Python for standard modules."""
    from importlib.metadata import packages_distributions, version

    top = module_name.partition(".")[0]
    names = sorted(set(packages_distributions().get(top, ())))
    return " ".join(f"{name} {version(name)}" for name in names) or f"python {sys.version.partition(' ')[0]}"


def _compiled(part: Any) -> Iterator[bytes]:
    """Yield the bytecode of a notebook's class or function, which has no file."""
    for function in vars(part).values() if isinstance(part, type) else (part,):
        code = getattr(getattr(function, "__func__", function), "__code__", None)
        if isinstance(code, CodeType):
            yield from _instructions(code)


def _instructions(code: CodeType) -> Iterator[bytes]:
    yield code.co_code
    yield repr((code.co_names, code.co_varnames)).encode()
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _instructions(constant)
        else:  # the iteration order of a set differs between processes
            yield repr(sorted(map(repr, constant)) if isinstance(constant, frozenset) else constant).encode()


def _hash(pieces: Iterable[bytes]) -> str:
    digest = hashlib.sha256()
    for piece in pieces:
        digest.update(len(piece).to_bytes(8))
        digest.update(piece)
    return digest.hexdigest()[:LENGTH]
