"""Build a cell's module, local training, and devices' test data from the settings."""

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.parameter import is_lazy

from edgefl.config import registry
from edgefl.config.answers import must_be_shaped, wrong
from edgefl.errors import EdgeflError
from edgefl.learning.data.data_in_memory import SplitInMemory
from edgefl.learning.data.device_data import DeviceData
from edgefl.learning.federation.training_data import TrainingData
from edgefl.learning.local.cost import tried
from edgefl.learning.local.local_training import LocalTraining
from edgefl.learning.local.trial import refuse_other_draws
from edgefl.learning.local.update_rule import UpdateRule
from edgefl.learning.models import Model
from edgefl.learning.modules.model_files import begin_with
from edgefl.learning.modules.randomness import watched
from edgefl.learning.scores.device_tests import DeviceTests
from edgefl.learning.scores.metrics import BEST
from edgefl.learning.settings import EvaluationSettings, LearningSettings
from edgefl.learning.tasks import Task
from edgefl.rng import Streams

CLOSE = 1e-4  # probabilities add up to 1 with this tolerance


def begun_module(
    settings: LearningSettings, training_data: TrainingData, streams: Streams
) -> tuple[nn.Module, tuple[str, ...]]:
    """Build the module of the model that a run begins with, in evaluation mode, on the torch device.

    Returns:
        The module, and notes on its outputs.

    Raises:
        EdgeflError: the model does not fit the task, the metrics or its initial file.
    """
    classes, input_shape = training_data.classes, training_data.inputs.shape
    if "top5" in settings.evaluation.metrics and classes <= BEST:
        raise EdgeflError(
            f"top5 of {classes} labels is always 1: leave top5 out", ("learning", "evaluation", "metrics")
        )
    module = build_module(training_data.model, input_shape, classes, streams).eval()
    outputs = refuse_outputs(module, input_shape, classes, training_data.task)
    _check_task(training_data.task, outputs, training_data.train.y[:1].cpu())
    if settings.initial is not None:
        begin_with(module, settings.initial.path, partial=settings.initial.partial)
    return module.to(training_data.torch_device), (
        *_spare_outputs(outputs.shape[-1], classes, training_data.task),
        *_probabilities(outputs, training_data.task),
    )


def _spare_outputs(outputs: int, classes: int, task: Task) -> Iterator[str]:
    """Note outputs of a model that edgefl's tasks never compare with a target; a task of your own may use them."""
    if outputs > classes and ":" not in registry.name_of("tasks", task):
        yield (
            f"learning.model: the model returns {outputs:,} numbers for a target, but num_classes is {classes:,}, so"
            " no target belongs to the others; let the model return num_classes numbers"
        )


def _probabilities(outputs: Tensor, task: Task) -> Iterator[str]:
    """Note a model that ends with a softmax, since cross-entropy applies another."""
    if task.of_classes and bool((outputs >= 0).all() and (outputs.sum(-1) - 1).abs().max() < CLOSE):
        yield (
            "learning.model: the model returns probabilities, but the loss applies a softmax itself, so the model"
            " learns slowly; leave out the model's softmax"
        )


def build_module(model: Model, input_shape: tuple[int, ...], classes: int, streams: Streams) -> nn.Module:
    """Build a model's module with initial parameters that depend on the seed alone."""
    with torch.random.fork_rng(devices=[]):
        # only the CPU's generator draws parameters; `torch.manual_seed` would also seed GPUs that are used later
        torch.default_generator.manual_seed(int(streams("model").integers(2**62)))
        module = model.build(input_shape, classes)
    if not isinstance(module, nn.Module):
        raise wrong(model.build, module, "a torch.nn.Module", "learning", "model")
    refuse_parameters(module)
    return module


def refuse_parameters(module: nn.Module) -> None:
    """Raise an error if a module's parameters are lazy or of another type than float32, or none can be trained."""
    lazy = [name for name, each in module.named_parameters() if is_lazy(each)]
    if lazy:
        raise EdgeflError(
            f"the model has lazy layers ({lazy[0]}) of unknown size until data arrive: give each layer"
            " its number of inputs, an argument of build()",
            ("learning", "model"),
        )
    trained = [(name, each.dtype) for name, each in module.named_parameters() if each.requires_grad]
    if not trained:
        raise EdgeflError("the model has no parameters to train: choose another model", ("learning", "model"))
    for name, dtype in trained:
        if dtype != torch.float32:
            raise EdgeflError(
                f"the model's parameter {name} is {_short(dtype)}, but devices train float32: make the module"
                " float32, as module.float() does",
                ("learning", "model"),
            )


def _short(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")


@torch.no_grad()
def refuse_outputs(module: nn.Module, input_shape: tuple[int, ...], classes: int, task: Task) -> Tensor:
    """Return the outputs of a module (in evaluation mode) for one sample if they fit the task's targets.

    Raises:
        EdgeflError: the outputs do not fit the targets; the error names the remedy.
    """
    with watched(torch.device("cpu")) as drawn:
        outputs = tried(module, torch.zeros(1, *input_shape))
    refuse_other_draws(drawn)
    if drawn:
        raise EdgeflError(
            "the model draws random numbers in evaluation mode, so tests of the same model would differ: draw only if"
            " self.training is true, as in F.dropout(x, p, self.training)",
            ("learning", "model"),
        )
    if not isinstance(outputs, Tensor):
        raise wrong(module.forward, outputs, "the logits alone, a tensor", "learning", "model")
    if outputs.dtype != torch.float32:
        raise EdgeflError(
            f"the model returns numbers of {_short(outputs.dtype)}, but the loss takes float32: return them with"
            " .float()",
            ("learning", "model"),
        )
    found = list(outputs.shape)
    if task.per_position and found[:-1] != [1, *input_shape]:
        raise EdgeflError(
            f"the model returns {found} for one sample, with a target at each of its {input_shape[0]} positions:"
            f" the model must return [batch, {input_shape[0]}, {classes}], as {{name: lstm, targets: every}} does, or"
            " take one target per sample (for shakespeare, set targets: last)",
            ("learning", "model"),
        )
    if not task.per_position and len(found) != 2:
        raise EdgeflError(
            f"the model returns {found} for one sample, but there is one target per sample: the model must return "
            f"[batch, {classes}] (if it has an output per position, return the last one, or use task every_token)",
            ("learning", "model"),
        )
    if task.of_classes and found[-1] < classes:
        raise EdgeflError(
            f"the model returns {found} for one sample, but there are {classes} classes: it must return at least one"
            " output per class",
            ("learning", "model"),
        )
    return outputs


@torch.enable_grad()
def _check_task(task: Task, outputs: Tensor, y: Tensor) -> None:
    """Raise an error unless a sample's losses and scores have shape [1], and the loss is differentiable."""
    outputs = outputs.detach().requires_grad_()
    losses = task.losses(outputs, y)
    for method, answer in ((task.losses, losses), (task.scores, task.scores(outputs, y))):
        must_be_shaped(method, answer, ((1,),), "a number for each sample, a tensor", "learning", "task")
    if not losses.requires_grad:
        wanted = "losses that depend on the outputs by differentiable operations of torch"
        raise wrong(task.losses, losses, wanted, "learning", "task")


def device_tests(
    evaluation: EvaluationSettings,
    train: SplitInMemory,
    device_data: DeviceData,
    streams: Streams,
    split: SplitInMemory | None,
) -> DeviceTests | None:
    """Deal each device its own test data from a split; return None without a split or if devices share the data."""
    if split is None or evaluation.tested_on == "labels":
        return None
    return DeviceTests(device_data, split, train, count=evaluation.samples, streams=streams)


def local_training(settings: LearningSettings, training_data: TrainingData, module: Any) -> LocalTraining:
    """Build the local training of the scenario's model on devices.

    Raises:
        EdgeflError: the model cannot be trained with these settings.
    """
    local = settings.local
    training = LocalTraining(
        training_data.model,
        module,
        training_data.train,
        UpdateRule(local.momentum, local.optimiser, local.weight_decay, local.clip_norm),
        batching=local.batching,
        bf16=local.precision == "bf16",
        threads=training_data.threads,
        task=training_data.task,
        compiled=settings.kernels == "numba",
    )
    if local.batch < training.smallest_batch:
        raise EdgeflError(
            f"batch norm cannot train on batches of one sample: choose a batch of {training.smallest_batch} or more",
            ("learning", "local", "batch"),
        )
    return training
