"""Settings of learning: model, data, algorithm, local training, evaluation and costs."""

from collections.abc import Callable, Iterator
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Self

from pydantic import Field, model_validator

from edgefl.config import registry
from edgefl.config.scenario_fields import Named, Section
from edgefl.learning.privacy import PrivacySettings
from edgefl.learning.warm_starts import WarmStart

if TYPE_CHECKING:  # at run time, settings must not load PyTorch
    from torch import Tensor

    from edgefl.learning.tasks import Task


# keys of `learning` that the theorem excludes, and the effect of each on a local step or a transfer
BEYOND_THEORY = {
    "local.weight_decay": "adds to each gradient",
    "local.clip_norm": "scales gradients down",
    "local.augmentation": "changes the samples of local steps, but not those of the theorem's loss",
    "privacy": "clips updates and adds noise to them",
    "uplink_codec": "sends a compressed update instead of the exact one",
    "downlink_codec": "makes devices start from a model other than the global one",
}


class InitialModel(Section):
    """The file of the initial model, pretrained or from another run; by default the initial model is random."""

    path: Path = Field(
        description="safetensors file with the module's tensor names, such as a run's models/cell0.safetensors;"
        " frozen parameters are loaded from it too"
    )
    partial: bool = Field(
        False,
        description="load the tensors that fit, such as those of all layers but the last, and draw the other "
        "tensors from the seed; otherwise a file that does not fit is an error",
    )


class LocalSettings(Section):
    """Settings of local training: amount of work, optimiser, and numerical methods."""

    steps: int = Field(
        5, ge=1, le=1_000_000, description="e: local iterations per round; unused if epochs is set"
    )
    epochs: int | None = Field(None, ge=1, le=100_000, description="local epochs per round, instead of steps")
    batch: int = Field(128, ge=1, le=10_000_000, description="B: samples per mini-batch")
    partial_work: float = Field(
        0.0,
        ge=0,
        le=1,
        description="share of each round's participants that do only a random part of their epochs or steps, rounded"
        " to whole devices at random",
    )
    one_pass: bool = Field(
        False,
        description="whether a round's steps end after one pass over a device's samples, in training and in probe "
        "rounds: 300 samples in batches of 128 make 3 steps, the last with 44 samples, even if steps is 5",
    )
    lr: float = Field(
        0.01, gt=0, le=100, description="largest learning rate, used in a session's first round"
    )
    lr_schedule: Annotated[Any, Named("lr_schedules", "polynomial")] = Field(
        "polynomial",
        validate_default=True,
        description="shape of the learning rate's decay, in each session or over the run: the rate is"
        " lr (floor + (1 - floor) shape^power); polynomial: shape = 1 - (t-1)/T",
    )
    lr_power: float = Field(1.0, ge=0, le=100, description="exponent of the decay's shape; 0: constant rate")
    lr_floor: float = Field(0.0, ge=0, le=1, description="final learning rate of the decay, as a share of lr")
    probe_lr: float = Field(
        1.0, gt=0, le=1e6, description="learning rate of probe rounds, as a multiple of lr, without decay"
    )
    early_stopping: float | None = Field(
        None,
        ge=0,
        le=1e3,
        description="gamma: local training ends after epoch e if the loss on held-out samples has fallen by less than"
        " gamma / e since the previous epoch (F: 0.03 to 0.05), with any algorithm; null: the algorithm's own rule",
    )
    kept_apart: ClassVar[float] = 0.3  # share of samples held out for early stopping: FLASH's 7:3 split
    optimiser: Annotated[Any, Named("optimisers", "sgd")] = Field(
        "sgd",
        validate_default=True,
        description="optimiser of the local steps; its state is reset in each round, or kept",
    )
    momentum: float = Field(
        0.9, ge=0, lt=1, description="SGD's momentum, or Adam's beta1; reset each round unless state is kept"
    )
    weight_decay: float = Field(
        0.0,
        ge=0,
        le=1e3,
        description="weight decay: added to the gradients, or decoupled if the optimiser is adamw",
    )
    clip_norm: float | None = Field(
        None,
        gt=0,
        le=1e9,
        description="largest norm of a device's gradient; a longer gradient is scaled down before the "
        "algorithm corrects it; null: no clipping",
    )
    augmentation: bool = Field(
        False,
        description="shift training images by up to 4 pixels and mirror them, at random in every step, as for"
        " the papers' ResNets; unsuitable for digits and letters",
    )
    batching: Literal["auto", "stacked", "sequential"] = Field(
        "auto",
        description="stacked: devices train together; sequential: one by one; auto: stacked, except for models with "
        "recurrent layers, embedding bags or attention, models that cannot be stacked, and, on a CPU, models with "
        "convolutions or fewer than ten devices. Which is faster depends on the model, the batch size and the "
        "processor or GPU",
    )
    precision: Literal["float32", "bf16"] = Field(
        "float32",
        description="bf16: local training computes matrix products and convolutions in bfloat16, which is slower on a"
        " CPU without instructions for it",
    )

    def stop(self, epoch: "Tensor", loss: "Tensor", before: "Tensor") -> "Tensor":
        """Return whether each of k devices stops after an epoch [k], by `early_stopping`. FLASH, Algorithm 1.

        The first epoch is compared with the received model; a device trains for at most `epochs` epochs (E).

        Args:
            loss, before: [k] mean loss on held-out samples after this epoch, and after the previous epoch.
        """
        assert self.early_stopping is not None
        return before - loss < self.early_stopping / epoch

    @model_validator(mode="after")
    def _steps_or_epochs(self) -> Self:
        if self.partial_work and self.most < 2:
            raise ValueError("partial_work: one epoch, or one step, cannot be shortened: set two or more")
        if self.one_pass and self.epochs is not None:
            raise ValueError("one_pass limits the steps, and epochs replaces them: set only one of the two")
        return self

    @property
    def most(self) -> int:
        """The number of local epochs in a round, or of steps if epochs are not set."""
        return self.epochs or self.steps


class EvaluationSettings(Section):
    """Settings of the evaluation of models: test data, interval and scores."""

    validation: float | None = Field(
        None,
        gt=0,
        lt=1,
        description="share of training samples held out from all devices, for accuracy_validation and "
        "loss_validation: these scores choose settings, best models and targets, so that test data serve "
        "only for the report; null: no validation",
    )
    tested_on: Literal["labels", "devices"] = Field(
        "labels",
        description="test data. labels: all test samples of the labels that a session's devices hold; devices: "
        "each present device's own test samples, with accuracies averaged (F)",
    )
    samples: int | None = Field(
        None,
        ge=1,
        le=10**9,
        description="number of test samples per device if tested_on is devices (fewer if there are too few of its"
        " labels; all samples of its group if it has a single group's data); null: proportional to training samples",
    )
    metrics: tuple[Literal["top5", "macro_f1", "auc", "perplexity"], ...] = Field(
        (),
        max_length=4,
        description="additional test scores of the global model in rounds.csv. top5: top-5 accuracy; macro_f1: mean "
        "F1 over labels; auc: mean area under the ROC curve of each label against all other labels; perplexity: the "
        "exponential of the loss",
    )
    scores_every: int | None = Field(
        None,
        ge=1,
        le=10**9,
        description="number of rounds, counted over all sessions, between tests that write the scores of all present"
        " devices to evaluation.csv, if tested_on is devices; null: only the scores' mean and spread are recorded",
    )
    every: int = Field(
        1,
        ge=1,
        le=10**9,
        description="number of rounds, counted over all sessions, between tests of the global model",
    )

    @model_validator(mode="after")
    def _metrics_once(self) -> Self:
        if len(set(self.metrics)) < len(self.metrics):
            raise ValueError(f"metrics {', '.join(self.metrics)}: list each metric once")
        return self

    @model_validator(mode="after")
    def _scores_of_tests(self) -> Self:
        if self.scores_every is None:
            return self
        if self.tested_on != "devices":
            raise ValueError("scores_every records the tests of devices: set tested_on to devices")
        if self.scores_every % self.every:
            raise ValueError(
                f"scores_every ({self.scores_every}) is not a multiple of `every` ({self.every}): scores would fall"
                f" due in rounds without a test; set scores_every to a multiple of {self.every}"
            )
        return self


class CostSettings(Section):
    """Settings of costs: bits of a transfer, and samples for which computing time and energy are booked."""

    bits_per_parameter: int = Field(
        32, ge=1, le=64, description="bits per number: payload_bits divided by the number of parameters"
    )
    payload: Literal["model", "exchanged"] = Field(
        "exchanged",
        description="vectors counted per transfer. exchanged: all that the algorithm exchanges; model: one model (J)",
    )
    booked: Literal["nominal", "processed", "all"] = Field(
        "all",
        description="samples that count in computing time and energy. processed: samples in a device's mini-batches, "
        "counted twice with a personal model (fewer than e B if the device holds fewer than B or an epoch's last "
        "batch is short); all: also samples of forward passes for early stopping, for the choice of a model, or for "
        "a comparison or distillation, each counted as a third of a sample; nominal: e B (J 27, 28)",
    )
    flops_per_sample: Annotated[float, Field(ge=0, le=1e18)] | Literal["counted"] = Field(
        "counted", description="FLOPs of a sample's forward and backward pass, N_p phi: a number, or counted"
    )

    def bits(self, parameters: int, statistics: int, vectors: int) -> int:
        """Return the bits of a transfer of vectors with M parameters each, and Q statistics; 0 without vectors."""
        if not vectors:
            return 0
        counted = vectors if self.payload == "exchanged" else 1
        return self.bits_per_parameter * (counted * parameters + statistics)


class LearningSettings(Section):
    """Settings of learning: model, data, algorithm, and everything about training."""

    dataset: Annotated[Any, Named("datasets")] = Field(description="data set")
    task: Annotated[Any, Named("tasks", optional=True)] = Field(
        None, description="task, with its loss and its score; null: the data set's task"
    )
    partition: Annotated[Any, Named("partitions", "dirichlet")] = Field(
        "dirichlet", validate_default=True, description="partition: which device holds which samples"
    )
    model: Annotated[Any, Named("models")] = Field(
        description="neural network to train: its layers and number of parameters"
    )
    algorithm: Annotated[Any, Named("algorithms", "fedavg")] = Field(
        "fedavg",
        validate_default=True,
        description="how devices train and how the server aggregates their updates",
    )
    uplink_codec: Annotated[Any, Named("codecs", optional=True)] = Field(
        None, description="codec of the changes that devices send; null: changes are sent unencoded"
    )
    downlink_codec: Annotated[Any, Named("codecs", optional=True)] = Field(
        None,
        description="codec of the downlink, which then sends the change since the model from which the device's last"
        " aggregated update was trained, instead of the whole model; null: the whole model is sent",
    )
    privacy: PrivacySettings | None = Field(
        None,
        description="clip updates, add noise, and keep a privacy account (epsilon) per device; null: off",
    )
    initial: InitialModel | None = Field(
        None, description="file of the run's first model; null: a model drawn from the seed"
    )
    warm_start: Annotated[Any, Named("warm_starts", "previous")] = Field(
        "previous", validate_default=True, description="warm start: how a session's opening model is made"
    )
    pilot_sessions: int = Field(
        1,
        ge=1,
        le=1_000_000,
        description="P: sessions 1 to P have no warm start; the models of later sessions are saved for warm starts",
    )
    after_pilot: Literal["continue", "restart"] = Field(
        "continue",
        description="previous model of session P+1. continue: the last model of the pilot sessions; restart: the"
        " run's untrained first model, as if there had been no pilot session (except for what devices keep)",
    )
    drift: Annotated[Any, Named("drifts", "label_swap", optional=True)] = Field(
        None, description="concept drift: change of the devices' data during the run; null: no change"
    )
    theory: int | None = Field(
        None,
        ge=1,
        le=10**9,
        description="number of rounds between measurements for the convergence bound (columns theory_* of"
        " rounds.csv); null: no measurement",
    )
    kernels: Literal["torch", "numba"] = Field(
        "torch",
        description="code for local steps. numba: compiled code for plain SGD of logistic, mlp and mlp2 on a CPU,"
        " faster than torch and equal to it up to rounding; needs edgefl-cosim[kernels]",
    )
    local: LocalSettings = LocalSettings()
    evaluation: EvaluationSettings = EvaluationSettings()
    cost: CostSettings = CostSettings()

    @model_validator(mode="after")
    def _drift_that_is_known(self) -> Self:
        if self.algorithm.knows_drift and self.drift is None:
            name = registry.name_of("algorithms", self.algorithm)
            raise ValueError(f"algorithm: {name} needs a drift known in advance: set drift")
        return self

    def beyond_theory(self) -> Iterator[tuple[str, str, str]]:
        """Yield each setting that the convergence theorem does not cover: its key, its effect, and the remedy."""
        parts = {"algorithm": (self.algorithm, "fedavg"), "local.optimiser": (self.local.optimiser, "sgd")}
        for key, (part, plain) in parts.items():
            if (name := registry.name_of(f"{key.rpartition('.')[2]}s", part)) != plain:
                yield key, f"{name} is not {plain}", f"set {plain}"
        if self.local.momentum:
            yield "local.momentum", f"steps have momentum {self.local.momentum:g}", "set momentum to 0"
        if type(self.warm_start).anchor is not WarmStart.anchor:
            name = registry.name_of("warm_starts", self.warm_start)
            yield "warm_start", f"{name} adds to the local loss", "set previous, average or similarity"
        for key, what in BEYOND_THEORY.items():
            if attrgetter(key)(self):
                yield key, f"this setting {what}", "leave it out"

    @property
    def methods_on_models(self) -> tuple[Callable[..., Any], ...]:
        """The methods of the optimiser and the codecs, which, like the algorithm, compute devices' models."""
        codecs = (each for each in (self.uplink_codec, self.downlink_codec) if each is not None)
        return (self.local.optimiser.step, *(each.encode for each in codecs))

    @property
    def copies_in_transfers(self) -> int:
        """The number of models per participant that codecs and privacy keep in memory, besides the local model."""
        # uplink coding or privacy keeps the upload; downlink coding keeps the received model and the rebased upload
        return int(bool(self.uplink_codec or self.privacy)) + 2 * bool(self.downlink_codec)

    @property
    def learned(self) -> "Task":
        """The task that `task` names, or the data set's own task, not yet fitted to data."""
        return self.task or registry.get("tasks", self.dataset.task)()  # type: ignore[return-value]
