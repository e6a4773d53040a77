"""Check the contracts of optimisers, learning rate schedules, warm starts and models."""

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from edgefl.config import answers
from edgefl.errors import EdgeflError
from edgefl.learning.data.data_in_memory import SplitInMemory
from edgefl.learning.datasets import Split
from edgefl.learning.federation.cell_building import refuse_outputs, refuse_parameters
from edgefl.learning.local.cost import flops_per_sample
from edgefl.learning.local.gradients import OneByOne
from edgefl.learning.local.local_training import LocalTraining
from edgefl.learning.local.terms import run
from edgefl.learning.local.trial import try_step
from edgefl.learning.local.update_rule import UpdateRule
from edgefl.learning.lr_schedules import LrSchedule
from edgefl.learning.models import Model, Outputs, OutputTerm, Size
from edgefl.learning.modules.parameters import TensorLayout
from edgefl.learning.objective import CLASSIFICATION
from edgefl.learning.optimisers import Optimiser, Step
from edgefl.learning.warm_starts import Final, OpeningModel, Saved, WarmStart
from edgefl.testing.conformance import ContractError, must, must_be_shaped, must_repeat, pure, same

PARAMETERS, STATISTICS, CLASSES = 6, 2, 4
PURE = "draw no random numbers, and keep no state"
ROUNDING = 1e-5  # tolerance of short float32 sums
GRADIENT_ROUNDING = 1e-4  # tolerance of a model's logits and gradients, which are longer sums


def optimisers(optimiser: Optimiser) -> None:
    """Check that steps update models in place, each device independently, and that `weights` matches the steps."""
    for decay in (0.0, 0.1):
        together, alone = _steps_of(optimiser, decay, 3), _steps_of(optimiser, decay, 1)
        must(bool(together.isfinite().all()), "step() returns numbers that are not finite within three steps")
        must(
            torch.allclose(together[:1], alone, rtol=1e-5, atol=1e-7),
            "step() moves a device differently when other devices are stepped with it: keep rows independent",
        )
        must_repeat("step()", together, _steps_of(optimiser, decay, 3), "keep no state: state is an argument")
    must(
        torch.allclose(together, _steps_of(optimiser, decay, 3, each=True), rtol=1e-5, atol=1e-6),
        "step() moves models differently if step numbers are given per device, [k, 1], as with state: kept",
    )
    weights = optimiser.weights(3, 0.5)
    if weights is not None:
        must_be_shaped("weights()", weights, (3,), "one for each step")
        gradients = torch.randn(3, 1, PARAMETERS, dtype=torch.float64, generator=_generator())
        change = torch.tensordot(torch.from_numpy(weights[::-1].copy()), gradients, dims=1)
        moved = _moved(optimiser, gradients, 0.0, 0.5, torch.zeros(1, PARAMETERS, dtype=torch.float64))
        must(
            torch.allclose(moved, -0.1 * change),
            "weights() do not match the gradients' effect in three steps",
        )


def _steps_of(optimiser: Optimiser, decay: float, devices: int, *, each: bool = False) -> Tensor:
    """Return the models [devices, M] after three of the optimiser's steps along constant random gradients."""
    drawn = torch.randn(4, 3, PARAMETERS, generator=_generator())[:, :devices].clone()
    return _moved(optimiser, drawn[1:], decay, 0.9, drawn[0], each=each)


def _moved(
    optimiser: Optimiser,
    gradients: Tensor,
    decay: float,
    momentum: float,
    local: Tensor,
    *,
    each: bool = False,
) -> Tensor:
    state = [torch.zeros_like(local) for _ in range(optimiser.vectors)]
    before = local.clone()
    for step, grads in enumerate(gradients, start=1):
        number = torch.full((len(local), 1), float(step)) if each else step
        optimiser.step(local, grads.clone(), state, Step(number, 0.1, momentum, decay))
        must(not torch.equal(local, before), "step() did not move the models: update `local` in place")
    return local


def _generator() -> torch.Generator:
    return torch.Generator().manual_seed(2)


def lr_schedules(schedule: LrSchedule) -> None:
    """Check that a learning rate schedule's shape is in [0, 1], and depends on the arguments only."""
    for round_ in range(1, 101):
        progress = (round_ - 1) / 100
        shape = schedule.shape(round_, progress)
        must(
            0 <= shape <= 1,
            f"shape() is {shape} in round {round_}: it must be a fraction of the peak learning rate, in [0, 1]",
        )
        must_repeat("shape()", shape, schedule.shape(round_, progress), "keep no state")
    must(0 <= schedule.shape(101, 1.0) <= 1, "shape() leaves [0, 1] when the schedule ends")


def warm_starts(start: WarmStart) -> None:
    """Check that a warm start's weights sum to 1 or are empty, and that it retains only saved sessions."""
    must(start.probes >= 0, f"probes is {start.probes}: it must be 0 or more rounds")
    must(
        0 < start.probe_participants <= 1,
        f"probe_participants is {start.probe_participants}: it must be in (0, 1]",
    )
    torch.manual_seed(0)
    size = PARAMETERS + STATISTICS
    current = torch.randn(size)
    if start.probes:
        finals = [Final(torch.randn(size), accuracy) for accuracy in (0.5, 0.8)]
        made = pure("pilot()", start.pilot, finals, torch.randn(size), remedy=PURE)
        wanted = "a model with its statistics, [M + Q],"
        answers.must_be_shaped(start.pilot, made, ((size,),), wanted, like=current)
    saved: list[Saved] = []
    for session in range(2, 7):
        for gradient in (torch.randn(PARAMETERS), None):
            measured = gradient if start.probes else None
            opening = pure("opening()", start.opening, current, saved, measured, remedy=PURE)
            must(
                isinstance(opening, OpeningModel),
                f"opening() returned {opening!r:.40}: return an OpeningModel",
            )
            must(
                opening.model.shape == (size,)
                and opening.model.dtype == current.dtype
                and bool(torch.isfinite(opening.model).all()),
                f"opening() returned {opening.model.dtype} {tuple(opening.model.shape)}: return a finite model"
                " with its statistics, [M + Q], in the dtype of `current`",
            )
            must(
                set(opening.weights) <= {z.session for z in saved},
                f"opening() weights sessions {sorted(opening.weights)}: only saved sessions can have a weight",
            )
            must(
                not opening.weights or abs(sum(opening.weights.values()) - 1) < ROUNDING,
                f"weights sum to {sum(opening.weights.values())}: make the sum 1, or leave them empty",
            )
        newest = Saved(session, torch.randn(size), torch.randn(PARAMETERS) if start.probes else None)
        kept = pure("retain()", start.retain, [*saved, newest], remedy=PURE)
        order = [z.session for z in kept]
        must(
            set(order) <= {z.session for z in [*saved, newest]} and order == sorted(set(order)),
            f"retain() returned sessions {order}: keep some of the saved sessions, oldest first",
        )
        must(isinstance(start.checks(kept), bool), "checks() must return True or False")
        saved = kept
    anchor = start.anchor(current, torch.tensor([True, False, True, True]))
    if anchor is not None:
        output_term(anchor)


def output_term(term: OutputTerm) -> None:
    """Check that a term's written-out gradients equal the gradients of its loss."""
    outputs = [
        Outputs(torch.randn(3, CLASSES), torch.randn(3, PARAMETERS)) for _ in range(1 + len(term.references))
    ]
    own, references = outputs[0], outputs[1:]
    must_be_shaped("a term's loss()", term.loss(own, references), (3,), "a number per sample, [..., B]")
    pairs = zip(term.gradients(own, references), OutputTerm.gradients(term, own, references), strict=True)
    for written, derived in pairs:
        zero = torch.zeros(())
        one, other = torch.broadcast_tensors(
            zero if written is None else written, zero if derived is None else derived
        )
        must(
            torch.allclose(one, other, atol=ROUNDING),
            "a term's gradients() differs from the gradients of its loss(): correct it, or do not override it",
        )


def models(model: Model) -> None:
    """Check a model's logits, its size and written-out gradients, and that parameters depend on the seed only."""
    for name in ("typical_input", "typical_classes"):
        must(hasattr(model, name), f"state the typical size: ClassVar {name}")
    shape, classes = model.typical_input, model.typical_classes

    def built() -> torch.nn.Module:
        torch.manual_seed(0)
        return model.build(shape, classes)

    _check_training(model, built())
    module, x = built().eval(), torch.ones(2, *shape)
    with torch.no_grad():
        logits = module(x)
    must_be_shaped("logits for two samples", logits, (2, classes), "[batch, classes]")
    must(
        same(dict(module.state_dict()), dict(built().state_dict())),
        "build() made different parameters in two calls with the same torch seed: draw them from torch's generator",
    )
    size = model.size(shape, classes)
    counted = Size(TensorLayout.of(module).size, flops_per_sample(built(), shape))
    must(size in (None, counted), f"size() returned {size}, but the built module has {counted}")
    if model.writes_logits():
        x, (mean, scale) = 255 * torch.rand(5, *shape), (90.0, 1 / 70)
        tensors = {name: one.detach() for name, one in module.named_parameters()}
        written = model.logits(tensors, len(x), lambda first, end: x[first:end].clone(), (mean, scale))
        must(
            torch.allclose(written, module((x - mean) * scale), atol=GRADIENT_ROUNDING),
            "logits() differs from the module's output for (x - mean) * scale: correct or remove logits()",
        )
    if type(model).gradients is not Model.gradients:
        layout = TensorLayout.of(module)
        rows = 0.1 * torch.randn(2, layout.size)
        x, y = torch.rand(2, 3, *shape), torch.randint(classes, (2, 3))
        weight = torch.full((2, 3), 1 / 3)
        written, derived = (
            how(model, module, layout, rows, x, y, weight) for how in (type(model).gradients, Model.gradients)
        )
        must(
            torch.allclose(written, derived, atol=GRADIENT_ROUNDING),
            "gradients() differs from the gradients of the module's loss: correct it, or do not override it",
        )
        if model.knows_terms:  # terms with one reference model for all devices, and with one per device
            others = 0.1 * torch.randn(3, layout.size)
            at = (module, layout, rows, x, y, weight, [_Distance((others[0],)), _Distance((others[1:],))])
            must(
                torch.allclose(model.gradients(*at), _derived_gradients(*at), atol=GRADIENT_ROUNDING),
                "gradients() differs from the gradients of loss and terms: correct it, or do not set knows_terms",
            )


def _check_training(model: Model, module: torch.nn.Module) -> None:
    """Check that a run would accept a model's module, and that a training step repeats with the same seed."""
    shape, classes = model.typical_input, model.typical_classes
    inputs, none = np.ones((2, *shape), np.float32), np.zeros(1, np.float32)
    train = SplitInMemory(Split(inputs, np.zeros(2, np.int64)), none, none + 1, torch.device("cpu"))
    try:
        refuse_parameters(module)
        refuse_outputs(module.eval(), shape, classes, CLASSIFICATION)
        LocalTraining(model, module, train, UpdateRule())
    except EdgeflError as error:
        raise ContractError(error.args[0]) from error
    one, other = (
        try_step(OneByOne(model, module, False, train.x, draws=True), module, train, devices=1)
        for _ in range(2)
    )
    must_repeat(
        "a training step", one, other, "draw random numbers from torch only, keep no state in forward()"
    )


class _Distance(OutputTerm):
    """A loss term for the check: squared distances of logits and representation from a reference model's."""

    def loss(self, outputs: Outputs, references: Sequence[Outputs]) -> Tensor:
        logits, representation = (
            ((own - its) ** 2).sum(-1) for own, its in zip(outputs, *references, strict=True)
        )
        return logits + representation


def _derived_gradients(
    module: torch.nn.Module,
    layout: TensorLayout,
    rows: Tensor,
    x: Tensor,
    y: Tensor,
    weight: Tensor,
    terms: Sequence[OutputTerm],
) -> Tensor:
    """Compute the gradients that `Model.gradients` must return, by autograd, one device after the other."""
    gradients = torch.empty_like(rows)
    for k, row in enumerate(rows.clone().requires_grad_()):
        own = run(module, layout.views(row), x[k])
        losses = torch.nn.functional.cross_entropy(own.logits, y[k], reduction="none")
        for term in terms:
            others = [one if one.dim() == 1 else one[k] for one in term.references]
            losses = losses + term.loss(own, [run(module, layout.views(one), x[k]) for one in others])
        (gradients[k],) = torch.autograd.grad(losses @ weight[k], row)
    return gradients
