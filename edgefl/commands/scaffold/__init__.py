"""Write the folder of `edgefl new`: a scenario, a study, a notebook and, optionally, components, ready to run."""

import re
from importlib.resources import files
from json import dumps
from pathlib import Path

from edgefl.config import shipped
from edgefl.errors import EdgeflError
from edgefl.studies.schema import schema

TEMPLATES = ("scenario.yaml", "study.yaml", "first_look.ipynb")
PARTS = ("my_algorithm.py", "my_mobility.py", "my_model.py")  # files that are copied from the examples


def write(folder: Path, *, name: str, devices: int, own_parts: bool) -> list[Path]:
    """Write the folder of a new scenario and study.

    Args:
        folder: a new or empty folder.
        name: the name of scenario and study.
        own_parts: whether to add an algorithm, a model and a mobility model to edit, instead of built-in ones.

    Returns:
        The paths of the written files.

    Raises:
        EdgeflError: the folder is not empty, or cannot be written.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if any(folder.iterdir()):
            raise EdgeflError(f"{folder} is not empty; choose another folder")
        written = []
        for template in TEMPLATES:
            text = (files("edgefl.commands.scaffold") / template).read_text(encoding="utf-8")
            written.append(folder / template)
            written[-1].write_text(_filled(text, name, devices, own_parts), encoding="utf-8")
        for part in PARTS if own_parts else ():
            written.append(folder / part)
            written[-1].write_bytes((shipped.EXAMPLES / part).read_bytes())
        for of in ("scenario", "study"):  # schemas with which editors complete and check
            written.append(folder / f"{of}.schema.json")
            written[-1].write_text(dumps(schema(of), indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    except OSError as error:
        raise EdgeflError(
            f"{folder}: cannot be written ({error.strerror or error}); choose another folder"
        ) from error
    return written


def _filled(text: str, name: str, devices: int, own_parts: bool) -> str:
    """Fill in a template; keep lines marked `#own ` if `own_parts` is true, otherwise `#built-in ` lines."""
    kept, other = ("own", "built-in") if own_parts else ("built-in", "own")
    text = re.sub(rf"^#{other} .*\n", "", text, flags=re.MULTILINE)
    text = re.sub(rf"^#{kept} ", "", text, flags=re.MULTILINE)
    if not own_parts:
        text = re.sub(r'^ *"import my_.*\n', "", text, flags=re.MULTILINE)  # in the notebook
    return text.replace("{name}", name).replace("{devices}", str(devices))
