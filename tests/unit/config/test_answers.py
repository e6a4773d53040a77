"""Test that a component's wrong return value causes exit code 2 and one error: file, line, method, expected value."""

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
M = 650  # number of parameters of the logistic model of 8 x 8 digits
FEDAVG = "learning.algorithms.fedavg:FedAvg"
SCAFFOLD = "learning.algorithms.scaffold:Scaffold"
DITTO = "learning.algorithms.ditto:Ditto"
SIMILARITY = "learning.warm_starts.similarity:Similarity"
ALGORITHM = {"learning": {"algorithm": "WRONG"}}
EPOCHS = {"learning": {"algorithm": "WRONG", "local": {"epochs": 2}}}
PERSONAL = {"learning": {"algorithm": "WRONG", "evaluation": {"tested_on": "devices"}}}
POISSON, JOURNAL = "engine.churn.poisson:Poisson", "engine.power_models.journal:JournalPower"
SELECTOR = {"rounds": {"selector": {"name": "WRONG", "count": 2}}}
DRIFT = "learning.drifts.label_swap:LabelSwap"
IID, CLASSES = "learning.partitions.iid:Iid", "learning.tasks.classification:Classification"
QSGD = {"learning": {"uplink_codec": "WRONG"}}
WARM = {"learning": {"warm_start": "WRONG"}}
WALK = {"devices": {"mobility": "WRONG"}}
SCHEDULER = {"radio": {"scheduler": "WRONG"}}
PER_ROUND = {"radio": {"preset": "journal", "scheduler": "WRONG"}}
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
    (FEDAVG, "receive", "replace(right, start=right.start[:1])", ALGORITHM, "shape (1,): return start: "),
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
    *[
        (base, method, value, key, "of type float32 on cpu, not float64 on cpu")
        for base, method, value, key in (
            (FEDAVG, "receive", "replace(right, start=right.start.double())", ALGORITHM),
            (FEDAVG, "correct", "right.double()", ALGORITHM),
            (FEDAVG, "aggregate", "(right[0].double(), right[1])", ALGORITHM),
            (FEDAVG, "deployed", "right.double()", ALGORITHM),
            (FEDAVG, "upload", "replace(right, rows=right.rows.double())", ALGORITHM),
            (SCAFFOLD, "keep", "{name: one.double() for name, one in right.items()}", ALGORITHM),
            (DITTO, "personal", "right.double()", PERSONAL),
            ("learning.codecs.qsgd:Qsgd", "encode", "replace(right, rows=right.rows.double())", QSGD),
            ("learning.codecs.top_k:TopK", "compress", "(right[0].double(), right[1])", QSGD),
            (SIMILARITY, "opening", "replace(right, model=right.model.double())", WARM),
            (SIMILARITY, "pilot", "right.double()", WARM),
        )
    ],
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
    ("learning.codecs.qsgd:Qsgd", "encode", "right.rows", QSGD, "return a Coded"),
    ("learning.codecs.qsgd:Qsgd", "encode", "replace(right, bits=8)", QSGD, "bits: a tensor with one"),
    ("learning.codecs.qsgd:Qsgd", "memory", "None", QSGD, "return a dict of names and lengths"),
    ("learning.codecs.top_k:TopK", "compress", "right[0]", QSGD, "return two values, the decoded vectors"),
    ("learning.codecs.top_k:TopK", "distortion", "0.5", QSGD, "return Unbiased(omega) or Contraction(delta)"),
    (SIMILARITY, "opening", "right.model", WARM, "return an OpeningModel"),
    (
        SIMILARITY,
        "opening",
        "replace(right, model=right.model[:1])",
        WARM,
        f"model: a tensor of shape ({M},)",
    ),
    (SIMILARITY, "pilot", "None", WARM, "return the pilot model"),
    (SIMILARITY, "retain", "None", WARM, "return a list of some of the saved sessions"),
    (
        "learning.lr_schedules.cosine:Cosine",
        "shape",
        "None",
        {"learning": {"local": {"lr_schedule": "WRONG"}}},
        "",
    ),
    (
        "learning.models.mlp:Mlp",
        "build",
        "None",
        {"learning": {"model": "WRONG"}},
        "return a torch.nn.Module",
    ),
    ("learning.datasets.digits:Digits", "load", "None", {"learning": {"dataset": "WRONG"}}, "return a Data"),
    (
        IID,
        "assign",
        "right[0]",
        {"learning": {"partition": "WRONG"}},
        "a list of 4 arrays",
    ),
    ("mobility.random_waypoint:RandomWaypoint", "start", "None", WALK, "return a movement with moves"),
    ("engine.selectors.uniform:Uniform", "select", "1", SELECTOR, ""),
    (CLASSES, "losses", "right.mean()", {"learning": {"task": "WRONG"}}, "a number for each sample"),
    (CLASSES, "losses", "right.detach()", {"learning": {"task": "WRONG"}}, "differentiable"),
    (CLASSES, "scores", "0.5", {"learning": {"task": "WRONG"}}, "a number for each sample"),
    (
        DRIFT,
        "change",
        "replace(right, y=right.y + 100)",
        {"learning": {"drift": "WRONG"}},
        "y: labels from 0 to 9",
    ),
    ("channel.schedulers.equal_share:EqualShare", "shares", "0 * right", SCHEDULER, "some flow a share"),
    (POISSON, "switches", "iter([1.0, 1.0, 1.0])", {"devices": {"churn": "WRONG"}}, "each later than"),
    (POISSON, "switches", "iter(['soon'])", {"devices": {"churn": "WRONG"}}, "each later than"),
    (JOURNAL, "draws", "replace(right, receive_w=-1.0)", {"devices": {"power": "WRONG"}}, "at least 0"),
    (
        JOURNAL,
        "draws",
        "replace(right, tail=((1.0, float('nan')),))",
        {"devices": {"power": "WRONG"}},
        "finite",
    ),
    (
        JOURNAL,
        "draws",
        "replace(right, tail=(1.0, 2.0))",
        {"devices": {"power": "WRONG"}},
        "a tuple of (seconds",
    ),
    (IID, "assign", "[ids - 1 for ids in right]", {"learning": {"partition": "WRONG"}}, "from 0 to "),
    (IID, "assign", "[right[0]] * len(right)", {"learning": {"partition": "WRONG"}}, "each sample once"),
    ("channel.path_loss.umi:UMi", "lines", "None", {"radio": {"path_loss": "WRONG"}}, "return LossLines"),
    (
        "channel.path_loss.umi:UMi",
        "los_probability",
        "right + 1",
        {"radio": {"path_loss": "WRONG"}},
        "in [0, 1]",
    ),
    ("channel.path_loss.umi:UMi", "los_probability", "1.0", {"radio": {"path_loss": "WRONG"}}, "an array"),
    ("engine.servers.fedbuff:FedBuff", "ready", "1.5", SERVER, "return an integer of at least 0"),
    ("engine.sessions.schedule:Schedule", "reason_to_end", "[1]", {"sessions": {"name": "WRONG"}}, "or None"),
    (
        POISSON,
        "switches",
        "None",
        {"devices": {"churn": "WRONG"}},
        "an iterator of times",
    ),
    (
        JOURNAL,
        "draws",
        "1.0",
        {"devices": {"power": "WRONG"}},
        "return Draws",
    ),
    ("engine.backgrounds.load:Load", "load", "0.1", BACKGROUND, "return two numbers, the load"),
    (
        "channel.schedulers.equal_share:EqualShare",
        "shares",
        "None",
        SCHEDULER,
        "give each of 4 flows a share",
    ),
    *(
        ("channel.schedulers.equal_share:EqualShare", "shares", answer, patch, words)
        for patch in (SCHEDULER, PER_ROUND)
        for answer, words in (
            ("2 * right", "sum to at most 1, got 2.0"),
            ("-right", "a share >= 0"),
            ("right + float('nan')", "a share >= 0"),
        )
    ),
]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    yield tmp_path
    sys.modules.pop("wrong_part", None)


def written(folder: Path, base: str, method: str, answer: str, patch: Mapping) -> Path:
    """Write a component whose method returns a wrong value, and a scenario that names it."""
    module, _, name = f"edgefl.{base}".partition(":")
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
    if "scheduler" not in str(patch) and "selector" not in str(patch):  # errors from `channel` name no files
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


@pytest.mark.parametrize(
    ("base", "method", "answer", "patch"),
    [
        ("learning.codecs.qsgd:Qsgd", "encode", "replace(right, rows=right.rows * float('nan'))", QSGD),
        (CLASSES, "losses", "right * float('nan')", {"learning": {"task": "WRONG"}}),
        (
            "learning.optimisers.sgd:Sgd",
            "step",
            "given[0].fill_(float('nan'))",
            {"learning": {"local": {"optimiser": "WRONG"}}},
        ),
    ],
)
def test_numbers_that_are_not_finite_name_the_own_method_behind_them(
    base: str,
    method: str,
    answer: str,
    patch: Mapping,
    folder: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    file = written(folder, base, method, answer, patch)
    assert code_of("run", file, "--allow-code", "--out", folder / "run", "--quiet") == 2
    told = capsys.readouterr().err
    assert f"wrong_part.py:7 Wrong.{method}()" in told
    assert "is not finite" in told


def test_a_selector_may_return_an_array(folder: Path) -> None:
    """Ids that are NumPy integers, which would overflow in keys of random streams, become plain integers."""
    array = "__import__('numpy').array(right)"
    for answer in ("right", array):
        sys.modules.pop("wrong_part", None)
        file = written(folder, "engine.selectors.uniform:Uniform", "select", answer, SELECTOR)
        assert code_of("run", file, "--allow-code", "--out", folder / f"run-{len(answer)}", "--quiet") == 0
    one, other = (folder / f"run-{len(answer)}" / "devices.csv" for answer in ("right", array))
    assert one.read_bytes() == other.read_bytes()


@pytest.mark.parametrize("answer", ["2 * right", "-right", "right + float('nan')"])
def test_wrong_shares_in_every_slot_are_refused(
    answer: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """With resource blocks, shares only rank the flows, so wrong shares would go unnoticed without a check."""
    file = written(folder, "examples.my_scheduler:ShortestJobFirst", "shares", answer, SCHEDULER)
    assert code_of("run", file, "--allow-code", "--out", folder / "run", "--quiet") == 2
    assert "wrong_part:Wrong.shares() must give " in capsys.readouterr().err
