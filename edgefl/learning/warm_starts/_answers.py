"""Call a warm start's methods, and check the results.

Each function raises an EdgeflError that names the method and the required result, if the result is wrong.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from edgefl.config.answers import must_be_shaped, wrong
from edgefl.learning.warm_starts import Final, OpeningModel, Saved, WarmStart

if TYPE_CHECKING:
    from torch import Tensor

PLACE = ("learning", "warm_start")


def opening_of(
    warm_start: WarmStart, current: Tensor, saved: Sequence[Saved], gradient: Tensor | None
) -> OpeningModel:
    """Return the opening model, which has the shape of `current`."""
    method, made = warm_start.opening, warm_start.opening(current, saved, gradient)
    if not (isinstance(made, OpeningModel) and isinstance(made.weights, Mapping)):
        raise wrong(method, made, "an OpeningModel", *PLACE)
    must_be_shaped(method, made.model, (tuple(current.shape),), "model: a tensor", *PLACE, like=current)
    if not made.model.sum().isfinite():
        raise wrong(method, made.model, "model: finite numbers, not nan or inf", *PLACE)
    return made


def pilot_of(warm_start: WarmStart, finals: Sequence[Final], initial: Tensor) -> Tensor:
    """Return the pilot model, which has the shape of `initial`."""
    made = warm_start.pilot(finals, initial)
    shape, wanted = tuple(initial.shape), "the pilot model, a tensor"
    must_be_shaped(warm_start.pilot, made, (shape,), wanted, *PLACE, like=initial)
    if not made.sum().isfinite():
        raise wrong(warm_start.pilot, made, "finite numbers, not nan or inf", *PLACE)
    return made


def retained_by(warm_start: WarmStart, saved: Sequence[Saved]) -> list[Saved]:
    """Return the saved sessions that the warm start keeps."""
    kept = warm_start.retain(saved)
    if not (isinstance(kept, list) and all(isinstance(one, Saved) for one in kept)):
        raise wrong(warm_start.retain, kept, "a list of some of the saved sessions", *PLACE)
    return kept
