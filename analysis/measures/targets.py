"""Target accuracies, which are absolute, or relative to the best accuracy of a variant."""

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from edgefl.analysis.page.formatting import percent_of

DEFAULT = "95%"
BEST = "best"  # names the peak of the best variant in each session
RELATIVE = re.compile(r"\s*(?P<share>[-+\d.eE]+)\s*%(?:\s+of\s+(?P<peak>.*\S))?\s*")
HOW = "such as 0.8 (an accuracy), '95%' (of the reference's best accuracy) or '95% of NAME' (of NAME's best)"


@dataclass(frozen=True)
class Target:
    """A target accuracy.

    Attributes:
        value: an accuracy 0..1; or for a relative target, a share of the best accuracy: rho in J (31).
        relative: whether `value` is a share of the best accuracy in the same seed and session.
        peak: the variant with this best accuracy, or `best` for the best variant; None for the reference.
    """

    value: float
    relative: bool = True
    peak: str | None = None

    @property
    def key(self) -> str:
        """The target as written on the command line, and in the column `target`."""
        if not self.relative:
            return f"{self.value:g}"
        return f"{percent_of(self.value)}%" + (f" of {self.peak}" if self.peak else "")

    @property
    def short(self) -> str:
        """The target as written in verdicts and headings; a peak without an owner is the reference's."""
        if not self.relative:
            return f"{percent_of(self.value)} % accuracy"
        owner = {None: "", BEST: "the best "}.get(self.peak, f"{self.peak}'s ")
        return f"{percent_of(self.value)} % of {owner}peak"

    def named(self, reference: str | None, single: bool = False) -> str:
        """Describe the target accuracy in full.

        A relative target that names no variant refers to `reference`, or to the `single` variant of the runs.
        """
        if not self.relative:
            return f"an accuracy of {percent_of(self.value)} %"
        whose = self.peak or reference
        if single and whose is None:
            return f"{percent_of(self.value)} % of its own best accuracy in the session"
        owner = "the best variant's" if whose in (None, BEST) else f"{whose}'s"
        return f"{percent_of(self.value)} % of {owner} best accuracy in the session"


def target_of(given: "str | float | Target") -> Target:
    """Parse a target accuracy: a number, or a text such as `95% of average`, a share of a variant's best accuracy.

    Raises:
        ValueError: the value cannot be read, or is outside (0, 1].
    """
    if isinstance(given, Target):
        return given
    share = RELATIVE.fullmatch(given) if isinstance(given, str) else None
    if isinstance(given, bool):
        raise ValueError(f"target is {given}: give one {HOW}")
    try:
        value = float(share["share"]) / 100 if share else float(given)
    except (TypeError, ValueError) as error:
        raise ValueError(f"target '{given}' cannot be read: give one {HOW}") from error
    if not (math.isfinite(value) and 0 < value <= 1):
        also = f"; for {value:g} % accuracy write {value / 100:g}" if not share and 1 < value <= 100 else ""
        raise ValueError(
            f"target is {given}: must be an accuracy or a share above 0 and at most 1, {HOW}{also}"
        )
    return Target(value, relative=share is not None, peak=share["peak"] if share else None)


def targets_of(given: "str | float | Target | Iterable[str | float | Target]") -> tuple[Target, ...]:
    """Parse one or several targets; drop duplicates, keep the order."""
    several: Iterable[str | float | Target]
    several = [given] if isinstance(given, str | int | float | Target) else given
    return tuple(dict.fromkeys(target_of(one) for one in several))


def check_known(target: Target, known: bool, reference: str | None) -> None:
    """Refuse a target that is not `known` in any session that is compared.

    Raises:
        ValueError: these sessions have no accuracy, or lack the best accuracy that a relative target refers to.
    """
    named = target.peak or reference if target.relative else None
    if not known and named not in (None, BEST):
        raise ValueError(
            f"{named} has no accuracy in the sessions that are compared, so its best accuracy sets no target: name"
            " another variant, as in '95% of best', or give an accuracy, such as 0.8"
        )
    if not known:
        raise ValueError(
            "the sessions that are compared have no accuracy: run sessions whose models are tested"
        )


def untrained(given: "str | float | Target | Iterable[str | float | Target]", instead: str) -> str:
    """Return the note on runs without training, which also says that requested targets do not apply."""
    keys = [one.key for one in targets_of(given) if one.key != DEFAULT]
    targets = f"; the target{'s' * (len(keys) > 1)} {', '.join(keys)} cannot be applied" * bool(keys)
    return f"no run has an accuracy (runs without training): {instead}{targets}"


def apart(given: "str | float | Target | Iterable[str | float | Target]") -> str:
    """Return the name of the folder for reports on given targets; '' for the default target."""
    keys = [one.key for one in targets_of(given)]
    return (
        "" if keys == [DEFAULT] else re.sub(r"[^A-Za-z0-9.]+", "-", "-".join(["target", *keys])).rstrip("-")
    )


def with_peaks(
    targets: Sequence[Target], variants: Sequence[str], reference: str | None
) -> tuple[Target, ...]:
    """Name the variant with the peak that each relative target refers to; without a reference, the first variant.

    A target that names the reference is the one that names no variant.

    Raises:
        ValueError: a target names an unknown variant.
    """
    for target in targets:
        if target.relative and target.peak not in (None, BEST, *variants):
            raise ValueError(
                f"target '{target.key}': no variant '{target.peak}'; known: {', '.join(variants)}, {BEST}"
            )
    first = variants[0] if reference is None and len(variants) > 1 else None
    peaks: dict[str | None, str | None] = {None: first} | ({reference: None} if reference else {})
    named = [replace(one, peak=peaks.get(one.peak, one.peak)) if one.relative else one for one in targets]
    return tuple(dict.fromkeys(named))
