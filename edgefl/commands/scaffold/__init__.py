"""What `edgefl new` writes: a folder with a scenario, a study, parts of one's own and a notebook, ready to run."""

import re
from importlib.resources import files
from json import dumps
from pathlib import Path

from edgefl.errors import EdgeflError
from edgefl.studies.schema import schema

FILES = ("scenario.yaml", "study.yaml", "my_parts.py", "first_look.ipynb")


def write(folder: Path, *, name: str, devices: int, own_parts: bool) -> list[Path]:
    """Write the folder.

    Args:
        folder: new or empty.
        name: of scenario and study.
        own_parts: with an algorithm, a model, a data set and a mobility model to change; else with built-in ones.

    Returns:
        The files.

    Raises:
        EdgeflError: the folder has something in it, or cannot be written.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if any(folder.iterdir()):
            raise EdgeflError(f"{folder} is not empty; choose another folder")
        written = []
        for template in FILES:
            if template == "my_parts.py" and not own_parts:
                continue
            text = (files("edgefl.commands.scaffold") / template).read_text(encoding="utf-8")
            if template != "my_parts.py":
                text = _filled(text, name, devices, own_parts)
            written.append(folder / template)
            written[-1].write_text(text, encoding="utf-8")
        for of in ("scenario", "study"):  # for editors
            written.append(folder / f"{of}.schema.json")
            written[-1].write_text(dumps(schema(of), indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    except OSError as error:
        raise EdgeflError(f"{folder}: cannot be written ({error.strerror or error})") from error
    return written


def _filled(text: str, name: str, devices: int, own_parts: bool) -> str:
    """Fill a template in; lines that begin with `#own ` or `#built-in ` are for one of the two kinds of folder."""
    kept, other = ("own", "built-in") if own_parts else ("built-in", "own")
    text = re.sub(rf"^#{other} .*\n", "", text, flags=re.MULTILINE)
    text = re.sub(rf"^#{kept} ", "", text, flags=re.MULTILINE)
    if not own_parts:
        text = re.sub(r'^ *"import my_parts.*\n', "", text, flags=re.MULTILINE)  # in the notebook
    return text.replace("{name}", name).replace("{devices}", str(devices))
