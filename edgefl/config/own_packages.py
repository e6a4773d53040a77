"""edgefl's packages `channel` and `analysis`, also where a file of the user's has the name of one."""

import sys
from importlib.machinery import PathFinder
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

from edgefl.config.scenario_files import HOME
from edgefl.errors import EdgeflError

PACKAGES = ("channel", "analysis")


def prefer() -> None:
    """Import edgefl's packages where another module would be found by their names: its code never runs.

    What has been imported already stays: `require` refuses it where edgefl needs its own.
    """
    for name in PACKAGES:
        ours = HOME / name / "__init__.py"
        if name in sys.modules or _file(PathFinder.find_spec(name)) == ours:
            continue
        spec = spec_from_file_location(name, ours, submodule_search_locations=[str(ours.parent)])
        if spec and spec.loader and ours.is_file():
            sys.modules[name] = module_from_spec(spec)
            spec.loader.exec_module(sys.modules[name])


def require(*names: str) -> None:
    """Refuse to go on where a module of the user's has been imported by the name of one of edgefl's packages.

    Raises:
        EdgeflError: names both, and the remedy.
    """
    for name in names:
        module = sys.modules.get(name)
        if module is not None and _file(getattr(module, "__spec__", None)) != HOME / name / "__init__.py":
            where = getattr(module, "__file__", None) or "a module without a file"
            raise EdgeflError(
                f"{where} was imported before edgefl's package '{name}' ({HOME / name}): rename it, or import edgefl"
                " first"
            )


def _file(spec: object) -> Path | None:
    origin = getattr(spec, "origin", None)
    return Path(origin).resolve() if origin else None
