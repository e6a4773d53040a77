"""Check the contract of algorithms by calling each method as in the first round of a session."""

import copy
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from edgefl.config.answers import must_be_shaped
from edgefl.learning.algorithms import (
    RECEIVED_GRADIENT,
    Algorithm,
    Received,
    Sent,
    ServerState,
    Trained,
    Updates,
)
from edgefl.learning.chance import RoundChance
from edgefl.learning.updates import answers
from edgefl.learning.updates.device_states import DeviceStates
from edgefl.learning.updates.members import RoundReceivers, SessionMembers
from edgefl.rng import Streams
from edgefl.testing.conformance import must, pure, same
from edgefl.testing.learning_contracts import PARAMETERS, ROUNDING, output_term

USES = ("models", "mean", "updates")
DRAW, KEEP = "draw random numbers from", " only, and keep no state"
CHANCE = RoundChance(Streams(4), (1, "train", 1), torch.device("cpu"))


DEVICES = (0, 1, 2)
NOTHING = torch.zeros(PARAMETERS)


def _losses(models: Tensor, samples: Sequence[np.ndarray]) -> Tensor:
    return torch.rand(len(samples), len(models))


def algorithms(algorithm: Algorithm) -> None:
    """Check that an algorithm keeps shapes, modifies no argument, and moves the model only if local models move."""
    exchanged = (algorithm.vectors_down, algorithm.vectors_up)
    must(
        min(exchanged) >= 1 or max(exchanged) == 0,
        "vectors_down, vectors_up: at least 1 for the model, or both 0 if nothing is exchanged",
    )
    must(algorithm.uses in USES, f"uses is {algorithm.uses!r}: it must be one of {', '.join(USES)}")
    must(0 <= algorithm.keeps_apart() < 1, "keeps_apart() must return a share of the samples, in [0, 1)")
    torch.manual_seed(0)
    # devices in their first round, which keep no vectors yet
    states, samples = DeviceStates(len(DEVICES), torch.device("cpu")), [np.arange(1)] * len(DEVICES)
    members = SessionMembers(algorithm, states, dict.fromkeys(DEVICES, 1), NOTHING)
    rng = CHANCE.of_devices("receive", DEVICES)
    devices = RoundReceivers(algorithm, DEVICES, {*DEVICES}, states, samples, _losses, NOTHING, rng)
    model, many = torch.randn(PARAMETERS), len(DEVICES)
    state = dict(answers.state(algorithm.init_state, algorithm.init_state(model, {}, members)))
    lent = copy.deepcopy(state)
    joined = answers.state(algorithm.join, algorithm.join(state, members, members))
    must(
        set(joined) == set(state) and same(lent, state),
        f"join() turned a state with {sorted(state)} into {sorted(joined)}: keep the names, and make new tensors",
    )
    received = answers.received(algorithm.receive, algorithm.receive(model, state, devices), many, model)
    start = received.start
    own = {name: torch.zeros(many, PARAMETERS) for name in algorithm.device_vectors}
    at_start = {RECEIVED_GRADIENT: torch.randn(many, PARAMETERS)} if algorithm.whole_gradients else {}
    given, local = torch.randn(2, many, PARAMETERS)
    _check_correct(algorithm, given, (local, start, state, own | at_start))
    stopped = algorithm.stop(torch.ones(many), torch.rand(many), torch.rand(many))
    must(
        stopped.shape == (many,) and stopped.dtype == torch.bool,
        f"stop() returned {stopped.dtype} {tuple(stopped.shape)}: return True or False for each device, [k]",
    )
    for rows, moved in ((start.expand(many, -1).clone(), False), (torch.randn(many, PARAMETERS), True)):
        _one_round(algorithm, model, state, rows, received, own, moved)
    term = algorithm.term(torch.randn(PARAMETERS), torch.randn(many, PARAMETERS))
    if term is not None:
        output_term(term)


def _check_correct(algorithm: Algorithm, given: Tensor, lent: tuple[Any, ...]) -> None:
    """Check that `correct` returns finite gradients, each from its own device's row; lent are its other arguments."""

    def corrected(*lent: Any) -> Tensor:
        return algorithm.correct(given.clone(), *lent)  # gradients may be changed in place

    grads = pure("correct()", corrected, *lent, remedy="draw no random numbers, and keep no state")
    must_be_shaped(algorithm.correct, grads, (tuple(given.shape),), "a row per device, [k, M]", like=given)
    must(bool(grads.isfinite().all()), "correct() returned numbers that are not finite")
    local, start, state, own = lent
    for k in range(len(given)):
        row = slice(k, k + 1)
        own_row = {name: vectors[row] for name, vectors in own.items()}
        begin = start if start.dim() == 1 else start[row]
        alone = algorithm.correct(given[row].clone(), local[row], begin, state, own_row)
        must(
            torch.allclose(alone, grads[row], atol=ROUNDING),
            "correct() corrects a device differently when other devices train with it: keep rows independent",
        )


def _one_round(
    algorithm: Algorithm,
    model: Tensor,
    state: ServerState,
    rows: Tensor,
    received: Received,
    own: dict[str, Tensor],
    moved: bool,
) -> None:
    """Check `upload`, `keep` and `aggregate` in a round with given local models, one per row."""
    many = len(rows)
    told: dict[str, Any] = {
        "start": received.start,
        "iterations": torch.full((many,), 5.0),
        "travel": torch.full((many,), 5.0),
        "lr": 0.1,
    }
    lent = copy.deepcopy((model, rows, received.start, state))
    rng = CHANCE.of_devices("upload", range(many))
    slopes = torch.randn(many, PARAMETERS) if algorithm.whole_gradients else None
    trained = Trained(local=rows, notes=received.notes, rng=rng, gradients=slopes, **told)
    sent = _sent(algorithm, trained, state, own)
    shares = torch.tensor([0.5, 0.25, 0.25])
    notes = {**received.notes, **sent.notes}
    must(
        all(name in notes and notes[name].shape == (many,) for name in algorithm.remembers),
        f"remembers {list(algorithm.remembers)}: return these from receive() or upload(), one number per device",
    )
    rng = CHANCE.of_server("aggregate")
    updates = Updates(rows=sent.rows, shares=shares, coverage=1.0, notes=notes, rng=rng, **told)
    remedy = f"{DRAW} updates.rng{KEEP}"
    answer = pure("aggregate()", algorithm.aggregate, model, updates, state, remedy=remedy)
    after, state_after = answers.model_and_state(algorithm.aggregate, answer, model)
    must(
        bool(torch.isfinite(after).all()),
        "aggregate() returned a model that is not finite: return finite numbers",
    )
    turned = _in_other_order(updates)
    must(
        torch.allclose(algorithm.aggregate(model, turned, state)[0], after, atol=ROUNDING),
        "aggregate() depends on the order of the devices: treat all rows alike",
    )
    if algorithm.uses != "updates":
        alike = replace(updates, rows=updates.mean().expand(many, -1))
        must(
            torch.allclose(algorithm.aggregate(model, alike, state)[0], after, atol=ROUNDING),
            f"uses is {algorithm.uses!r}, but aggregate() reads individual updates: declare uses = 'updates'",
        )
    must(
        set(state_after) == set(state),
        f"aggregate() turned a state with {sorted(state)} into {sorted(state_after)}: keep the names",
    )
    must(
        same(lent, (model, rows, received.start, state)),
        "upload(), keep() or aggregate() modified an argument in place: make new tensors",
    )
    must(
        moved or torch.allclose(after, model, atol=ROUNDING),
        "the model moves in a first round although no local model has moved",
    )


def _sent(algorithm: Algorithm, trained: Trained, state: ServerState, own: dict[str, Tensor]) -> Sent:
    """Check `upload` and `keep`; return the devices' uploads."""

    def upload(trained: Trained, state: ServerState) -> Sent:
        return algorithm.upload(trained, state, _copies(own))

    answer = pure("upload()", upload, trained, state, remedy=f"{DRAW} trained.rng{KEEP}")
    sent = answers.sent(algorithm.upload, answer, trained.local)
    names = algorithm.device_vectors
    kept = algorithm.keep(trained, sent.rows, state, _copies(own))
    kept = answers.vectors(algorithm.keep, kept, names, trained.local)
    must(
        set(kept) == set(names),
        f"keep() returned {sorted(kept)}: return [k, M] for each of device_vectors {names}",
    )
    return sent


def _in_other_order(updates: Updates) -> Updates:
    """Return the updates of the same devices in reverse order."""
    one_each = ("rows", "shares", "iterations", "travel")
    turned: dict[str, Any] = {name: getattr(updates, name).flip(0) for name in one_each}
    start = updates.start if updates.start.dim() == 1 else updates.start.flip(0)
    notes = {name: note.flip(0) for name, note in updates.notes.items()}
    return replace(updates, **turned, start=start, notes=notes, rng=CHANCE.of_server("aggregate"))


def _copies(own: dict[str, Tensor]) -> dict[str, Tensor]:
    return {name: vectors.clone() for name, vectors in own.items()}
