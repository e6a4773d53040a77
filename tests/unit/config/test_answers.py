"""A wrong return value of a user's component is one error: file, line, method and the expected value; exit code 2."""

import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
import yaml

from tests.tools.called import code_of

SCENARIO = {
    "name": "mine",
    "devices": {"count": 4},
    "sessions": {"name": "schedule", "count": 3, "rounds": 2},
    "learning": {
        "dataset": "digits",
        "model": "logistic",
        "partition": "iid",
        "local": {"batch": 64, "lr": 0.1},
    },
}
M = 650  # parameters of the logistic model on 8 x 8 digits
FEDAVG = "edgefl.learning.algorithms.fedavg:FedAvg"
SCAFFOLD = "edgefl.learning.algorithms.scaffold:Scaffold"
DITTO = "edgefl.learning.algorithms.ditto:Ditto"
SIMILARITY = "edgefl.learning.warm_starts.similarity:Similarity"
ALGORITHM = {"learning": {"algorithm": "WRONG"}}
EPOCHS = {"learning": {"algorithm": "WRONG", "local": {"epochs": 2}}}
PERSONAL = {"learning": {"algorithm": "WRONG", "evaluation": {"tested_on": "devices"}}}
QSGD = {"learning": {"uplink_codec": "WRONG"}}
WARM = {"learning": {"warm_start": "WRONG"}}
WALK = {"devices": {"mobility": "WRONG"}}
SCHEDULER = {"radio": {"scheduler": "WRONG"}}
SERVER = {"rounds": {"server": {"name": "WRONG", "buffer": 2}}, "radio": {"sharing": "dynamic"}}
LOAD = {"name": "WRONG", "uplink_load": 0.1}
BACKGROUND = {
    "radio": {
        "sharing": "dynamic",
        "scheduler": "proportional_fair",
        "background": LOAD,
        "budget": {"power_over_share": "per_resource_block"},
    }
}
# base class, method, its return value (`right` is the base's value), the component's key, words of the error
CASES: list[tuple[str, str, str, Mapping, str]] = [
    (SCAFFOLD, "init_state", "None", ALGORITHM, "None: return the server's state"),
    (FEDAVG, "receive", "right.start", ALGORITHM, f"shape ({M},): return a Received"),
    (FEDAVG, "receive", "replace(right, start=right.start[:1])", ALGORITHM, "shape (1,): return as start"),
    (
        FEDAVG,
        "correct",
        "right.mean()",
        ALGORITHM,
        f"shape (): return a row for each device, a tensor of shape (4, {M})",
    ),
    (FEDAVG, "correct", "1.0", ALGORITHM, "1.0 (float): return a row for each device"),
    (FEDAVG, "aggregate", "right[0]", ALGORITHM, f"return two values, the next model [{M}] and"),
    (
        FEDAVG,
        "aggregate",
        "(right[0].mean(), right[1])",
        ALGORITHM,
        f"the next model, a tensor of shape ({M},)",
    ),
    (FEDAVG, "aggregate", "(right[0], None)", ALGORITHM, "None: return the server's state"),
    (FEDAVG, "aggregate", "(right[0].numpy(), right[1])", ALGORITHM, "a torch tensor"),
    (FEDAVG, "learning_rate", "float('nan')", ALGORITHM, "nan (float): return a learning rate"),
    (FEDAVG, "keeps_apart", "'a third'", EPOCHS, "return a share of each device's samples"),
    (FEDAVG, "term", "1.0", ALGORITHM, "return an OutputTerm or None"),
    (FEDAVG, "deployed", "right * float('nan')", ALGORITHM, "return finite numbers"),
    (FEDAVG, "upload", "right.rows", ALGORITHM, "return a Sent"),
    (FEDAVG, "upload", "replace(right, rows=right.rows.mean(0))", ALGORITHM, f"of shape (4, {M})"),
    (SCAFFOLD, "keep", "None", ALGORITHM, "None: return a dict with control"),
    (DITTO, "correct_personal", "None", PERSONAL, "None: return a row for each device"),
    (DITTO, "personal_point", "right[0]", PERSONAL, "return a row for each device"),
    (DITTO, "personal", "right[0]", PERSONAL, "return a row for each device"),
    ("edgefl.learning.codecs.qsgd:Qsgd", "encode", "right.rows", QSGD, "return a Coded"),
    (
        "edgefl.learning.codecs.qsgd:Qsgd",
        "encode",
        "replace(right, bits=8)",
        QSGD,
        "as bits an integer for each",
    ),
    ("edgefl.learning.codecs.qsgd:Qsgd", "memory", "None", QSGD, "return a dict of names and lengths"),
    (
        "edgefl.learning.codecs.top_k:TopK",
        "compress",
        "right[0]",
        QSGD,
        "return two values, the decoded vectors",
    ),
    (
        "edgefl.learning.codecs.top_k:TopK",
        "distortion",
        "0.5",
        QSGD,
        "return Unbiased(omega) or Contraction(delta)",
    ),
    (SIMILARITY, "opening", "right.model", WARM, "return an OpeningModel"),
    (
        SIMILARITY,
        "opening",
        "replace(right, model=right.model[:1])",
        WARM,
        f"as model a tensor of shape ({M},)",
    ),
    (SIMILARITY, "pilot", "None", WARM, "return the pilot model"),
    (SIMILARITY, "retain", "None", WARM, "return a list of some of the saved sessions"),
    (
        "edgefl.learning.lr_schedules.cosine:Cosine",
        "shape",
        "None",
        {"learning": {"local": {"lr_schedule": "WRONG"}}},
        "",
    ),
    (
        "edgefl.learning.models.mlp:Mlp",
        "build",
        "None",
        {"learning": {"model": "WRONG"}},
        "return a torch.nn.Module",
    ),
    (
        "edgefl.learning.datasets.digits:Digits",
        "load",
        "None",
        {"learning": {"dataset": "WRONG"}},
        "return a Data",
    ),
    (
        "edgefl.learning.partitions.iid:Iid",
        "assign",
        "right[0]",
        {"learning": {"partition": "WRONG"}},
        "a list of 4 arrays",
    ),
    ("edgefl.mobility.random_waypoint:RandomWaypoint", "start", "None", WALK, "return a movement with moves"),
    (
        "edgefl.engine.selectors.uniform:Uniform",
        "select",
        "1",
        {"rounds": {"selector": {"name": "WRONG", "count": 2}}},
        "",
    ),
    ("edgefl.engine.servers.fedbuff:FedBuff", "ready", "1.5", SERVER, "return an integer of at least 0"),
    (
        "edgefl.engine.sessions.schedule:Schedule",
        "reason_to_end",
        "[1]",
        {"sessions": {"name": "WRONG"}},
        "or None",
    ),
    (
        "edgefl.engine.churn.poisson:Poisson",
        "switches",
        "None",
        {"devices": {"churn": "WRONG"}},
        "an iterator of times",
    ),
    (
        "edgefl.engine.power_models.journal:JournalPower",
        "draws",
        "1.0",
        {"devices": {"power": "WRONG"}},
        "return Draws",
    ),
    ("edgefl.engine.backgrounds.load:Load", "load", "0.1", BACKGROUND, "return two numbers, the load"),
    (
        "edgefl.channel.schedulers.equal_share:EqualShare",
        "shares",
        "None",
        SCHEDULER,
        "give each of 4 flows a share",
    ),
]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    yield tmp_path
    sys.modules.pop("wrong_part", None)


def written(folder: Path, base: str, method: str, answer: str, patch: Mapping) -> Path:
    """Write a component whose method returns a wrong value, and a scenario that names the component."""
    module, _, name = base.partition(":")
    (folder / "wrong_part.py").write_text(
        f"""from dataclasses import replace
from {module} import {name}

class Wrong({name}):
    "Answer wrongly."

    def {method}(self, *given, **named):
        right = super().{method}(*given, **named)
        return {answer}
"""
    )
    scenario = yaml.safe_load(yaml.safe_dump(SCENARIO))
    for section, values in patch.items():
        kept = scenario.setdefault(section, {})
        kept |= {key: kept[key] | value if key == "local" else value for key, value in values.items()}
    text = yaml.safe_dump(scenario).replace("WRONG", "wrong_part:Wrong")
    file = folder / "mine.yaml"
    file.write_text(text)
    return file


@pytest.mark.parametrize(("base", "method", "answer", "patch", "words"), CASES)
def test_a_wrong_answer_names_the_method_and_what_was_wanted(
    base: str,
    method: str,
    answer: str,
    patch: Mapping,
    words: str,
    folder: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    file = written(folder, base, method, answer, patch)
    assert code_of("run", file, "--allow-code", "--out", folder / "run", "--quiet") == 2
    (told,) = (line for line in capsys.readouterr().err.splitlines() if "error: " in line)
    assert words in told
    assert "Wrong" in told
    assert "wrong_part" in told
    if "selector" not in str(patch):
        assert f".{method}()" in told
    if "scheduler" not in str(patch) and "selector" not in str(patch):  # channel knows no files
        assert f"wrong_part.py:7 Wrong.{method}() returned " in told or "background" in str(patch)


def test_an_error_within_a_method_names_its_line(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = written(folder, FEDAVG, "aggregate", "1 / 0", ALGORITHM)
    assert code_of("run", file, "--allow-code", "--out", folder / "run", "--quiet") == 2
    assert "wrong_part.py:9 aggregate: ZeroDivisionError" in capsys.readouterr().err


def test_a_model_that_is_not_finite_names_its_method(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = written(folder, FEDAVG, "aggregate", "(right[0] * float('nan'), right[1])", ALGORITHM)
    assert code_of("run", file, "--allow-code", "--out", folder / "run", "--quiet") == 2
    assert "wrong_part.py:7 aggregate(), is not finite" in capsys.readouterr().err
