"""Test that a scenario is validated without PyTorch, with the same results as in a run."""

import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from edgefl.channel import fading, fading_grids
from edgefl.learners import model_size
from edgefl.learning.models import Model, Size
from edgefl.learning.models.logistic import Logistic
from edgefl.learning.models.mlp import Mlp
from edgefl.learning.models.mlp2 import Mlp2
from edgefl.scenario import scenario
from edgefl.studies.validation import check_build

ROOT = Path(__file__).parents[3]
DIGITS = """\
name: digits
devices: {count: 6}
sessions: {name: schedule, count: 2, rounds: 3}
learning: {dataset: digits, model: %s, algorithm: scaffold, warm_start: similarity, cost: {payload: exchanged}}
"""


@pytest.mark.parametrize("model", ["logistic", "{name: mlp2, hidden: 7}"])
def test_validate_agrees_with_pytorch(model: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "digits.yaml"
    file.write_text(DIGITS % model)
    loaded = scenario.load(file)
    found = check_build(loaded, "cpu")
    monkeypatch.setattr(model_size, "of", lambda *arguments: None)
    assert found == check_build(loaded, "cpu")
    parameters = re.search(r"([\d,]+) parameters", found.about[1])
    # scaffold exchanges two vectors
    assert found.payload_bits[""] == 32 * 2 * int(parameters[1].replace(",", ""))


@pytest.mark.parametrize("model", [Logistic(), Mlp2(hidden=5), Mlp(hidden=(5,)), Mlp(hidden=(4, 6, 3))])
@pytest.mark.parametrize(("shape", "classes"), [((3,), 2), ((2, 4, 4), 7)])
def test_a_stated_size_is_the_counted_one(model: Model, shape: tuple[int, ...], classes: int) -> None:
    from edgefl.learning.local.cost import flops_per_sample
    from edgefl.learning.modules.parameters import TensorLayout

    module = model.build(shape, classes)
    counted = Size(TensorLayout.of(module).size, flops_per_sample(module, shape))
    assert model.size(shape, classes) == counted


def test_what_needs_tensors_is_left_to_pytorch() -> None:
    quickstart = scenario.load(ROOT / "scenarios" / "quickstart.yaml")
    plain = quickstart.learning
    assert model_size._is_enough(plain, "cpu")
    assert not model_size._is_enough(plain, "cuda")
    changes = ("local.precision", "bf16"), ("evaluation.tested_on", "devices"), ("drift", "label_swap")
    for key, value in changes:
        assert not model_size._is_enough(quickstart.with_({f"learning.{key}": value}).learning, "cpu")


def test_validating_loads_neither_pytorch_nor_all_of_scipy(tmp_path: Path) -> None:
    file = tmp_path / "digits.yaml"
    file.write_text((DIGITS % "logistic").replace("digits,", "synthetic,"))
    heavy = "{'torch', 'scipy.signal', 'scipy.stats', 'scipy.interpolate', 'pandas', 'sklearn', 'matplotlib'}"
    code = (
        "import sys; from edgefl.commands.cli import main\n"
        f"try: main(['validate', {str(file)!r}])\n"
        f"except SystemExit as end: print(end.code, {heavy} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout.splitlines()[-1] == "0 set()"


def test_the_loop_all_side_by_side_and_scipy_filter_alike_to_the_last_bit() -> None:
    from scipy import signal

    rng = np.random.default_rng(0)
    noise, begin = rng.standard_normal((3, 2, 500)), rng.standard_normal((3, 2, 1))
    by_scipy = signal.lfilter([1.0], [1.0, -0.99], noise, zi=begin)[0]
    assert np.array_equal(fading_grids.filtered_in_turn(noise, 0.99, begin), by_scipy)
    assert np.array_equal(fading_grids.filtered_side_by_side(noise, np.full(3, 0.99), begin), by_scipy)
    correlation = np.array([0.9, 0.99, -0.5])
    given = (noise, correlation, begin)
    alone = [fading_grids.filtered(*(part[i : i + 1] for part in given)) for i in range(3)]
    together = fading_grids.filtered_side_by_side(noise, correlation, begin)
    assert np.array_equal(together, np.concatenate(alone))
    assert np.array_equal(fading_grids.filtered(noise, correlation, begin), together)


def test_the_written_zero_is_that_of_j0() -> None:
    from scipy import special

    assert float(special.jn_zeros(0, 1)[0]) == fading.FIRST_BESSEL_ZERO
