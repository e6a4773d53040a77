"""Settings of learning: what is trained, on which data, and how."""

from collections.abc import Iterator
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Self

from pydantic import Field, model_validator

from edgefl.config import registry
from edgefl.config.scenario_fields import Named, Section
from edgefl.learning.privacy import PrivacySettings
from edgefl.learning.warm_starts import WarmStart

if TYPE_CHECKING:  # settings are read without PyTorch
    from torch import Tensor

    from edgefl.learning.tasks import Task


# keys of `learning` that have to be unset for the theorem, and what they do to a local step or to what travels
BEYOND_THEORY = {
    "local.weight_decay": "adds to each gradient",
    "local.clip_norm": "shortens gradients",
    "local.augmentation": "trains on other samples than those of the loss",
    "privacy": "clips and noises what devices send",
    "uplink_codec": "sends another change than the one that was trained",
    "downlink_codec": "lets devices begin with another model than the global one",
}


class InitialModel(Section):
    """The model that a run begins with, in place of one drawn by the seed: another run's, or a pretrained one."""

    path: Path = Field(
        description="safetensors file of tensors by the module's names, as a run's models/cell0.safetensors; frozen"
        " parameters come from it too"
    )
    partial: bool = Field(
        False,
        description="begin with the tensors that fit, say all but the last layer's; the others are drawn by the seed."
        " Else a file that does not fit is an error",
    )


class LocalSettings(Section):
    """What a device does in a round: how much, by which steps, and how it is computed."""

    steps: int = Field(5, ge=1, le=1_000_000, description="e: local iterations per round")
    epochs: int | None = Field(
        None, ge=1, le=100_000, description="local epochs per round, in place of steps"
    )
    batch: int = Field(128, ge=1, le=10_000_000, description="B: samples per mini-batch")
    partial_work: float = Field(
        0.0,
        ge=0,
        le=1,
        description="share of each round's participants, rounded, that does fewer epochs, or steps, drawn at random",
    )
    one_pass: bool = Field(
        False,
        description="a round's steps end with one pass over a device's samples, in training and in probe rounds: of"
        " 300 samples in batches of 128 it does 3 steps, the last of 44 samples, even if steps is 5",
    )
    lr: float = Field(
        0.01, gt=0, le=100, description="largest learning rate, that of a session's first round"
    )
    lr_schedule: Annotated[Any, Named("lr_schedules", "polynomial")] = Field(
        "polynomial",
        validate_default=True,
        description="shape in which the rate decays, in each session or over the run: lr (floor + (1 - floor)"
        " shape^power); polynomial: 1 - (t-1)/T",
    )
    lr_power: float = Field(1.0, ge=0, le=100, description="power of the decay's shape; 0 keeps lr constant")
    lr_floor: float = Field(0.0, ge=0, le=1, description="share of lr towards which it decays")
    probe_lr: float = Field(
        1.0, gt=0, le=1e6, description="learning rate of probe rounds, as a multiple of lr; no decay"
    )
    early_stopping: float | None = Field(
        None,
        ge=0,
        le=1e3,
        description="gamma: end local training after epoch e if the loss on samples kept apart has fallen by less"
        " than gamma / e since the one before, whatever the algorithm; F: 0.03 to 0.05; none: as the algorithm says",
    )
    kept_apart: ClassVar[float] = 0.3  # share of a device's samples for early stopping: F's 7:3 split
    optimiser: Annotated[Any, Named("optimisers", "sgd")] = Field(
        "sgd",
        validate_default=True,
        description="how devices' models move along their gradients; its state restarts each round, or is kept",
    )
    momentum: float = Field(
        0.9, ge=0, lt=1, description="SGD's momentum, or Adam's beta1; restarted each round"
    )
    weight_decay: float = Field(
        0.0,
        ge=0,
        le=1e3,
        description="weight of the model in its steps: added to gradients, with adamw apart",
    )
    clip_norm: float | None = Field(
        None,
        gt=0,
        le=1e9,
        description="largest norm of a device's gradient, to which a longer one is scaled down, before the algorithm"
        " corrects it; none: any",
    )
    augmentation: bool = Field(
        False,
        description="images of local training shifted by up to 4 pixels and mirrored at random in every step, as the"
        " papers' ResNets have them; not for digits and letters",
    )
    batching: Literal["auto", "stacked", "sequential"] = Field(
        "auto",
        description="devices trained together or one by one; auto: together, but for recurrent layers and embedding "
        "bags, and on a CPU convolutions and fewer than ten; a function of model, batch and whether there is a GPU",
    )
    precision: Literal["float32", "bf16"] = Field(
        "float32",
        description="bf16: matrix products and convolutions of local training in bfloat16; on a CPU only where it has"
        " instructions for it, else it is slower",
    )
    memory_gb: float | None = Field(
        None,
        gt=0,
        le=1e6,
        description="room for devices trained together, GB, whatever the machine; none: 0.0055 on a CPU, 4 on a GPU",
    )

    def stop(self, epoch: "Tensor", loss: "Tensor", before: "Tensor") -> "Tensor":
        """Return [k] whether devices stop after an epoch [k], by `early_stopping`. FLASH, Algorithm 1.

        The first epoch is compared with the received model; `epochs` is the most that a device does (E).

        Args:
            loss, before: [k] mean loss on samples kept apart, now and after the epoch before.
        """
        assert self.early_stopping is not None
        return before - loss < self.early_stopping / epoch

    @model_validator(mode="after")
    def _steps_or_epochs(self) -> Self:
        if self.partial_work and self.most < 2:
            raise ValueError("partial_work: of one epoch, or step, none does fewer: ask for two or more")
        if self.one_pass and self.epochs is not None:
            raise ValueError("one_pass bounds steps, and epochs replaces them: give one of the two")
        return self

    @property
    def most(self) -> int:
        """Epochs of a round, or steps where there are none."""
        return self.epochs or self.steps


class EvaluationSettings(Section):
    """What models are tested on, how often, and which scores there are."""

    validation: float | None = Field(
        None,
        gt=0,
        lt=1,
        description="share of the training samples that no device holds, for accuracy_validation and loss_validation:"
        " settings, best models and targets are chosen by these, and reported on the test data; none: there are none",
    )
    tested_on: Literal["labels", "devices"] = Field(
        "labels",
        description="test data: all of the labels that a session's devices hold, or those of each device present,"
        " whose accuracies are averaged (F)",
    )
    samples: int | None = Field(
        None,
        ge=1,
        le=10**9,
        description="test samples of each device, if tested on devices; none: in proportion",
    )
    metrics: tuple[Literal["top5", "macro_f1", "auc", "perplexity"], ...] = Field(
        (),
        max_length=4,
        description="further columns of rounds.csv about the global model on the test data: a label among the five"
        " likeliest, mean F1 over labels, mean area under the ROC curve of a label against the others, and exp of the"
        " loss",
    )
    scores_every: int | None = Field(
        None,
        ge=1,
        le=10**9,
        description="rounds from one table of all present devices' scores, evaluation.csv, to the next, if tested on"
        " devices; none: only their mean and spread",
    )
    every: int = Field(1, ge=1, le=10**9, description="rounds from one test of the global model to the next")

    @model_validator(mode="after")
    def _metrics_once(self) -> Self:
        if len(set(self.metrics)) < len(self.metrics):
            raise ValueError(f"metrics {', '.join(self.metrics)}: some are given twice")
        return self

    @model_validator(mode="after")
    def _scores_of_tests(self) -> Self:
        if self.scores_every is None:
            return self
        if self.tested_on != "devices":
            raise ValueError("scores_every writes down devices' own tests: set tested_on to devices")
        if self.scores_every % self.every:
            raise ValueError(
                f"scores_every {self.scores_every} is no multiple of every {self.every}: in its rounds"
                " nothing would be tested"
            )
        return self


class CostSettings(Section):
    """What is paid for: bits of a transfer, and samples whose computing takes time and energy."""

    bits_per_parameter: int = Field(32, ge=1, le=64, description="payload_bits = this x parameters")
    payload: Literal["model", "exchanged"] = Field(
        "exchanged",
        description="a transfer carries all that the algorithm exchanges, or one model whatever that is (J)",
    )
    booked: Literal["nominal", "processed", "all"] = Field(
        "all",
        description="samples whose compute time and energy are booked: processed: those in a device's mini-batches,"
        " fewer than e B where it holds less than B or an epoch's last batch is short, twice with a personal model;"
        " all: and a third for each that another model or a test runs forward only: to stop early, to choose a model,"
        " to compare or distil with one; nominal: e B (J 27, 28)",
    )
    flops_per_sample: Annotated[float, Field(ge=0, le=1e18)] | Literal["counted"] = Field(
        "counted", description="N_p phi, FLOPs per sample forward and backward: a number, or counted"
    )


class LearningSettings(Section):
    """What is trained, on which data, and how."""

    dataset: Annotated[Any, Named("datasets")] = Field(description="data set")
    task: Annotated[Any, Named("tasks", optional=True)] = Field(
        None, description="what is learned, with its loss and its score; none: what the data set is for"
    )
    partition: Annotated[Any, Named("partitions", "dirichlet")] = Field(
        "dirichlet", validate_default=True, description="label distribution"
    )
    model: Annotated[Any, Named("models")] = Field(description="model")
    algorithm: Annotated[Any, Named("algorithms", "fedavg")] = Field(
        "fedavg", validate_default=True, description="algorithm"
    )
    uplink_codec: Annotated[Any, Named("codecs", optional=True)] = Field(
        None, description="what devices send in place of whole changes of the model; none: these"
    )
    downlink_codec: Annotated[Any, Named("codecs", optional=True)] = Field(
        None,
        description="what devices receive in place of the whole model: its change since the one that they received"
        " last, coded; none: the model",
    )
    privacy: PrivacySettings | None = Field(
        None,
        description="clipping of what devices send, and noise, with an account of each device; none: neither",
    )
    initial: InitialModel | None = Field(
        None, description="file of the model that the run begins with; none: drawn by the seed"
    )
    warm_start: Annotated[Any, Named("warm_starts", "previous")] = Field(
        "previous", validate_default=True, description="how a session's opening model is made"
    )
    pilot_sessions: int = Field(
        1,
        ge=1,
        le=1_000_000,
        description="P: sessions 1 to P are plain; the models saved for warm starts come after them",
    )
    after_pilot: Literal["continue", "restart"] = Field(
        "continue",
        description="model that session P+1 finds: the pilot sessions' last one, or with restart the run's untrained"
        " first model, as if there had been no pilot session (what devices keep of their own stays)",
    )
    drift: Annotated[Any, Named("drifts", "label_swap", optional=True)] = Field(
        None, description="concept drift: how the devices' data change during the run; none: they do not"
    )
    theory: int | None = Field(
        None,
        ge=1,
        le=10**9,
        description="measure what the convergence bound needs, as columns theory_* of rounds: rounds from one"
        " measurement to the next; none: nothing",
    )
    local: LocalSettings = LocalSettings()
    evaluation: EvaluationSettings = EvaluationSettings()
    cost: CostSettings = CostSettings()

    @model_validator(mode="after")
    def _drift_that_is_known(self) -> Self:
        if self.algorithm.knows_drift and self.drift is None:
            name = registry.name_of("algorithms", self.algorithm)
            raise ValueError(f"algorithm: {name} knows the drift in advance, and there is none: give drift")
        return self

    def beyond_theory(self) -> Iterator[tuple[str, str, str]]:
        """Yield what the convergence theorem does not cover: the key, what it does, and the remedy."""
        parts = {"algorithm": (self.algorithm, "fedavg"), "local.optimiser": (self.local.optimiser, "sgd")}
        for key, (part, plain) in parts.items():
            if (name := registry.name_of(f"{key.rpartition('.')[2]}s", part)) != plain:
                yield key, f"{name} is not {plain}", f"set {plain}"
        if self.local.momentum:
            yield "local.momentum", f"steps have momentum {self.local.momentum:g}", "set 0"
        if type(self.warm_start).anchor is not WarmStart.anchor:
            name = registry.name_of("warm_starts", self.warm_start)
            yield "warm_start", f"{name} adds to the local loss", "set previous, average or similarity"
        for key, what in BEYOND_THEORY.items():
            if attrgetter(key)(self):
                yield key, f"it {what}", "leave it out"

    @property
    def copies_in_transfers(self) -> int:
        """Models of each participant in memory beside the local ones: those that travel in place of others."""
        # what is sent; what each received, and what it sent as the server counts it
        return int(bool(self.uplink_codec or self.privacy)) + 2 * bool(self.downlink_codec)

    @property
    def learned(self) -> "Task":
        """The task: the one that is named, else what the data set is for; not yet fitted to data."""
        return self.task or registry.get("tasks", self.dataset.task)()  # type: ignore[return-value]
