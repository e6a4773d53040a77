"""Resume a run that was killed or interrupted, or failed for lack of disk space."""

from pathlib import Path

from edgefl.config import own_code
from edgefl.config.yaml_source import write
from edgefl.contract import Learner
from edgefl.errors import EdgeflError
from edgefl.learners.building import torch_device
from edgefl.learners.own import Maker
from edgefl.run_directory import status as run_status
from edgefl.run_directory.circumstances import SCENARIO, circumstances, differences
from edgefl.run_directory.files import reading
from edgefl.run_directory.journal import FILE, header
from edgefl.run_directory.reading import FILE as RUN
from edgefl.run_directory.reading import NAMES, about_of, consent, repeat
from edgefl.scenario.scenario import Scenario, load, written


def left_behind(path: Path, learner: Maker | Learner | None = None) -> Scenario:
    """Return the scenario of an unfinished run.

    Args:
        learner: the external learner that the run began with, if any.

    Raises:
        EdgeflError: the run is complete or under way, the directory contains no run, run.json is damaged, or the run
            began with another learner.
    """
    about = run_status.resumable(path)
    if lost := [name for name in NAMES if about.get(name) is None]:
        raise EdgeflError(
            f"{path / RUN}: is damaged: it lacks {', '.join(lost)}; run the scenario again: edgefl run "
            f"{path / SCENARIO}{consent(about)}, or, in a study, repeat the study's command"
        )
    if not (path / "scenario.yaml").is_file():
        raise EdgeflError(f"{path}: has no scenario.yaml, from which a run is resumed; {repeat(path)}")
    scenario = load(path / "scenario.yaml")
    _check_learner(path, learner)
    return scenario


def device_of(path: Path) -> str:
    """Return the kind of PyTorch device on which an unfinished run was trained; `auto` if training has not begun."""
    return str((header(path / FILE) or {"device": "auto"})["device"])


def _check_learner(path: Path, learner: Maker | Learner | None) -> None:
    """Refuse to resume a run with a different learner."""
    theirs = (about_of(path).get("learner") or {}).get("name")
    ours = None if learner is None else own_code.name_of(learner)
    if theirs != ours:
        remedy = (
            f"give {theirs}: edgefl.resume({str(path)!r}, learner=...)" if theirs else "leave learner out"
        )
        raise EdgeflError(
            f"{path}: the run began with {theirs or 'no external learner'}, but now has {ours or 'none'}; {remedy}"
        )


def can_go_on(path: Path, scenario: Scenario) -> bool:
    """Return whether a directory contains an unfinished run of a scenario, with training from which it can resume."""
    described, journal, values = path / SCENARIO, path / FILE, written(scenario)
    if not (described.is_file() and journal.is_file()):
        return False
    with reading(described):
        if described.read_bytes() != write(values).encode():
            return False
    begun = header(journal)
    if begun is None:
        return False
    code = own_code.named_in([values])
    return not differences(begun, circumstances(described, torch_device(begun["device"]), code, {}))
