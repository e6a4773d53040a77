"""Load the user's own components, written `module:Class` in a scenario; check permission and missing methods.

A scenario may come from an untrusted source, and importing a module runs its code. A scenario's modules are therefore
imported only with the user's permission: `--allow-code`, or EDGEFL_ALLOW_CODE=1. No permission is needed for modules
that are already imported, such as a notebook's own, or for installed packages with components as entry points.
"""

import importlib
import inspect
import os
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from types import CodeType, ModuleType, TracebackType
from typing import Any

from edgefl.config import own_code
from edgefl.errors import EdgeflError, clipped, is_own

ALLOW = "EDGEFL_ALLOW_CODE"
_folder: ContextVar[Path | None] = ContextVar("folder of the scenario being read", default=None)
_loaded: set[str] = set()  # files of the modules that were imported because a scenario names them


def allow() -> None:
    """Allow scenarios to run their own code, in this process and in the processes of a study."""
    os.environ[ALLOW] = "1"


@contextmanager
def looking_in(folder: Path | None) -> Iterator[None]:
    """Also search a scenario's folder, if any, for modules imported in a `with` block."""
    before = _folder.set(folder)
    try:
        yield
    finally:
        _folder.reset(before)


def load(path: str, *, trusted: bool = False) -> type:
    """Import the class named by `module:Class`.

    Args:
        trusted: whether an installed package or the command line, and not a scenario, names the class.

    Raises:
        EdgeflError: the code is not allowed to run, or the class cannot be found or imported.
    """
    module_name, _, class_name = path.partition(":")
    here = module_name in sys.modules or own_code.is_ours(module_name)
    if not (trusted or here or _allowed()):
        raise EdgeflError(f"{_ask(path)} (in Python: import {module_name.partition('.')[0]} first)")
    module = _imported(path, module_name)
    named = getattr(module, class_name, None)
    if named is None:
        there = [value for value in vars(module).values() if inspect.isclass(value)]
        names = [value.__name__ for value in there if value.__module__ == module_name]
        known = f"; it defines {', '.join(names)}" if names else ""
        raise EdgeflError(f"cannot load '{path}': {_place(module)} has no {class_name or 'class'}{known}")
    if not inspect.isclass(named):
        raise EdgeflError(f"cannot load '{path}': {class_name} is not a class")
    own_code.of_part(named)
    return named


def load_function(path: str) -> Callable[..., Any]:
    """Import the function named by `module:function`, to be called with arguments from the scenario.

    Raises:
        EdgeflError: the user has not allowed code to run (needed even if the module is already imported, as in
            `os:system`), or the module lacks the function.
    """
    module_name, _, name = path.partition(":")
    if not _allowed():
        raise EdgeflError(_ask(path))
    module = _imported(path, module_name)
    named = getattr(module, name, None)
    if not callable(named):
        raise EdgeflError(f"cannot load '{path}': {_place(module)} has no function {name}")
    own_code.of_part(named)
    function: Callable[..., Any] = named
    return function


def misfit(function: Callable[..., Any], *args: Any, **options: Any) -> str:
    """Return why a function cannot be called with the given arguments; '' if it can, or if that is unknown."""
    try:
        inspect.signature(function).bind(*args, **options)
    except TypeError as error:
        return str(error)
    except ValueError:  # some functions written in C do not tell their arguments
        pass
    return ""


def require_methods(path: str, component: type, base: type) -> None:
    """Check that a component's class has all methods that its kind requires.

    Raises:
        EdgeflError: methods are missing; the message states their signatures.
    """
    lacking = sorted(getattr(component, "__abstractmethods__", ()))
    if lacking:
        methods = ", ".join(f"{name}{inspect.signature(getattr(component, name))}" for name in lacking)
        raise EdgeflError(
            f"'{path}' lacks methods that every {base.__name__} needs: write {clipped(methods, 300)}"
        )


def blame(error: BaseException) -> str | None:
    """Return file, line and error of a failure in the user's own code, or None if edgefl's code failed."""
    frames = traceback.extract_tb(error.__traceback__)
    theirs = [
        f"{frame.filename}:{frame.lineno} {frame.name}" for frame in frames if frame.filename in _loaded
    ]
    where = theirs[-1] if theirs else " or ".join(_miscalled(error))
    return f"{where}: {type(error).__name__}: {clipped(str(error), 300)}" if where else None


def pass_on(error: BaseException | None) -> None:
    """Raise an error again if a method of the user's code raised it while edgefl, not pydantic, called the method.

    Otherwise pydantic takes a ValueError of the method for an error about the scenario.
    """
    trace = error.__traceback__ if error else None
    if error and trace and is_own(trace.tb_frame) and blame(error):
        raise error


def place_of(code: CodeType | None) -> str:
    """Return `file:line ` of a function in the user's own code, or '' for other functions."""
    return f"{code.co_filename}:{code.co_firstlineno} " if code and code.co_filename in _loaded else ""


def _miscalled(error: BaseException) -> list[str]:
    """Return file, line and name of the user's methods of the error's class that do not accept edgefl's arguments.

    There are several if classes in several files have one name, since the error has only this name.
    """
    named, bracket, _ = str(error).partition("()")
    owner, _, method = named.rpartition(".")
    if not (isinstance(error, TypeError) and bracket):
        return []
    modules = [each for each in list(sys.modules.values()) if getattr(each, "__file__", None) in _loaded]
    found = (getattr(getattr(each, owner, None) if owner else each, method, None) for each in modules)
    codes = dict.fromkeys(getattr(each, "__code__", None) for each in found)
    return [f"{place_of(code)}{method}" for code in codes if place_of(code)]


def _allowed() -> bool:
    return os.environ.get(ALLOW, "0") not in ("", "0")


def _ask(path: str) -> str:
    return (
        f"'{path}' is code from outside edgefl, which runs only with your consent: read it, then add --allow-code or"
        f" set {ALLOW}=1"
    )


def _imported(path: str, module_name: str) -> ModuleType:
    folders = [str(folder.resolve()) for folder in (_folder.get(), Path.cwd()) if folder is not None]
    for folder in folders:
        # append the folder, so that none of its files shadows a package
        if not {"" if folder == str(Path.cwd()) else folder, folder} & set(sys.path):
            sys.path.append(folder)
    try:
        module = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        # whether the module or its package is missing, rather than a module that it imports
        itself = error.name and f"{module_name}.".startswith(f"{error.name}.")
        where = (
            f"; looked in {', '.join(dict.fromkeys(folders))}, PYTHONPATH and installed packages: run the command"
            f" in the folder that contains {module_name.partition('.')[0]}, or add that folder to PYTHONPATH"
        )
        remedy = where if itself else f", which {module_name} imports: install it"
        raise EdgeflError(f"cannot load '{path}': {error}{remedy}") from error
    except Exception as error:  # importing a user's file may raise any error
        where = _line(error.__traceback__, error)
        raise EdgeflError(
            f"cannot load '{path}': {where}{type(error).__name__}: {clipped(str(error), 300)}{_mismatched(error)}"
        ) from error
    _refuse_another(path, module)
    if getattr(module, "__file__", None) and not own_code.is_ours(module.__name__):
        _loaded.add(str(module.__file__))
    return module


def _mismatched(error: BaseException) -> str:
    """Suggest a remedy if timm imported a torchvision that was built for another PyTorch; otherwise ''."""
    frames = traceback.extract_tb(error.__traceback__)
    if not any("torchvision" in Path(frame.filename).parts for frame in frames):
        return ""
    from importlib.metadata import version

    return (
        f"; the installed torchvision does not match this PyTorch ({version('torch')}): install both from the"
        " same index, with the command given at https://pytorch.org"
    )


def _refuse_another(path: str, module: ModuleType) -> None:
    """Raise if Python imported another module of the same name instead of the module in the scenario's folder."""
    folder, have = _folder.get(), getattr(module, "__file__", None)
    wanted = folder / f"{module.__name__}.py" if folder else None
    if wanted and have and wanted.is_file() and wanted.resolve() != Path(have).resolve():
        raise EdgeflError(
            f"cannot load '{path}': {wanted} is hidden by {have}, a module of the same name; rename the hidden file"
        )


def _line(trace: TracebackType | None, error: BaseException) -> str:
    """Return `file:line ` of the code that raised an error during an import, or '' if unknown.

    Where edgefl refuses a class, the line is that of the class.
    """
    if isinstance(error, SyntaxError) and error.filename:
        return f"{error.filename}:{error.lineno} "
    import pydantic

    ours = ("<frozen", str(Path(__file__).parents[1]), str(Path(pydantic.__file__).parent))
    frames = [frame for frame in traceback.extract_tb(trace) if not frame.filename.startswith(ours)]
    return f"{frames[-1].filename}:{frames[-1].lineno} " if len(frames) > 1 else ""


def _place(module: ModuleType) -> str:
    return getattr(module, "__file__", None) or module.__name__
