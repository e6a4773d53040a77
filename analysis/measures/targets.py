"""Accuracies to reach: an accuracy itself, or a share of the best one that some variant came to."""

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from edgefl.analysis.page.formatting import percent_of

BEST = "best"  # whose peak: the best variant's of each session
RELATIVE = re.compile(r"\s*(?P<share>[-+\d.eE]+)\s*%(?:\s+of\s+(?P<peak>.*\S))?\s*")
HOW = "such as 0.8 (an accuracy), '95%' (of the reference's best accuracy) or '95% of average'"


@dataclass(frozen=True)
class Target:
    """An accuracy to reach.

    Attributes:
        value: an accuracy 0..1, or, where relative, a share of a peak: rho of J (31).
        relative: whether it is a share of the best accuracy in the same seed and session.
        peak: whose; None: the reference's; `best`: that of the best variant.
    """

    value: float
    relative: bool = True
    peak: str | None = None

    @property
    def key(self) -> str:
        """The target as it is written on the command line, and in the column `target`."""
        if not self.relative:
            return f"{self.value:g}"
        return f"{percent_of(self.value)}%" + (f" of {self.peak}" if self.peak else "")

    @property
    def short(self) -> str:
        """The target as the heading of a column has it."""
        return f"{percent_of(self.value)} % {'of peak' if self.relative else 'accuracy'}"

    def named(self, reference: str | None, single: bool = False) -> str:
        """Say in full what is to be reached.

        Args:
            reference: the variant whose peak a relative target is of, if it names none.
            single: whether only one variant is there.
        """
        if not self.relative:
            return f"an accuracy of {percent_of(self.value)} %"
        whose = self.peak or reference
        if single and whose is None:
            return f"{percent_of(self.value)} % of its own best accuracy in the session"
        owner = "the best variant's" if whose in (None, BEST) else f"{whose}'s"
        return f"{percent_of(self.value)} % of {owner} best accuracy in the session"


def target_of(given: "str | float | Target") -> Target:
    """Read a target.

    Args:
        given: a number is an accuracy; a text with a percent sign is a share of a peak: `95%`, `95% of average`.

    Raises:
        ValueError: it is none of these, or outside (0, 1].
    """
    if isinstance(given, Target):
        return given
    share = RELATIVE.fullmatch(given) if isinstance(given, str) else None
    try:
        value = float(share["share"]) / 100 if share else float(given)
    except ValueError as error:
        raise ValueError(f"target '{given}' cannot be read: give one {HOW}") from error
    if not (math.isfinite(value) and 0 < value <= 1):
        also = "; for a share of a peak write '95%'" if not share and 1 < value <= 100 else ""
        raise ValueError(
            f"target is {given}: must be an accuracy or a share above 0 and at most 1, {HOW}{also}"
        )
    return Target(value, relative=share is not None, peak=share["peak"] if share else None)


def targets_of(given: "str | float | Target | Iterable[str | float | Target]") -> tuple[Target, ...]:
    """Read one target or several, each kept once, in their order."""
    several: Iterable[str | float | Target]
    several = [given] if isinstance(given, str | int | float | Target) else given
    return tuple(dict.fromkeys(target_of(one) for one in several))


def usable(
    targets: Sequence[Target], variants: Sequence[str], reference: str | None, notes: list[str]
) -> list[Target]:
    """Keep the targets that have a peak, or need none; a note says which have not.

    Raises:
        ValueError: a target names a variant that is not there.
    """
    kept = []
    for target in targets:
        if target.relative and target.peak not in (None, BEST, *variants):
            raise ValueError(
                f"target '{target.key}': no variant '{target.peak}'; known: {', '.join(variants)}, {BEST}"
            )
        if target.relative and target.peak is None and reference is None and len(variants) > 1:
            notes.append(
                f"no variant is the reference, so {target.key} is of no peak and left out: name one (--reference"
                f" NAME, --target '{target.key} of {BEST}'), or give an accuracy (--target 0.8)"
            )
            continue
        kept.append(target)
    return kept
