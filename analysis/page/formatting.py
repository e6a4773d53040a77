"""Format numbers, units, spreads and lists as text."""

import difflib
import math
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path

NOTHING = "—"
ROUNDING = 1e-9  # error of a product
Units = tuple[tuple[str, float], ...]  # names and sizes of units, from small to large
ENERGY_UNITS: Units = (("mJ", 1e-3), ("J", 1.0), ("kJ", 1e3), ("MJ", 1e6))
TIME_UNITS: Units = (("ms", 1e-3), ("s", 1.0), ("h", 3600.0))


def compact_labels(labels: str) -> str:
    """Write `0 1 2 3 7` as `0–3, 7`; labels that are not numbers are listed unchanged."""
    words = labels.split()
    if not all(word.isdigit() for word in words):
        return ", ".join(words)
    return ranges(int(word) for word in words)


def count_of(number: int, noun: str) -> str:
    """Write a number of things: `1 device`, `1,200 devices`."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def counts_of(numbers: Iterable[int], noun: str) -> str:
    """Write several numbers of things as a range: `2 to 3 devices`, or `3 devices` if they are equal."""
    counts = list(numbers)
    most = count_of(max(counts), noun)
    return f"{min(counts):,} to {most}" if min(counts) < max(counts) else most


def did_you_mean(word: str, known: Collection[str]) -> str:
    """Return `: did you mean 'x'?` if a known word is similar, otherwise the list of known words."""
    # this copies the function in edgefl/config/registry.py, since neither package imports the other
    near = difflib.get_close_matches(word, known, n=1)
    return f": did you mean '{near[0]}'?" if near else f"; known: {', '.join(known)}"


def natural(name: str) -> tuple[tuple[str, float], ...]:
    """Make a sort key that puts `20 MHz` before `100 MHz`."""
    words = re.split(r"(\d+(?:\.\d+)?)", name)  # words and numbers alternate, a word first
    return tuple(zip(words[::2], [*map(float, words[1::2]), -math.inf], strict=True))


def ranges(values: Iterable[int]) -> str:
    """Write whole numbers with runs of three or more shortened: `4, 5, 6, 9` as `4–6, 9`."""
    runs: list[list[int]] = []
    for value in sorted(set(values)):
        if runs and value == runs[-1][-1] + 1:
            runs[-1].append(value)
        else:
            runs.append([value])
    texts = [f"{run[0]}–{run[-1]}" if len(run) > 2 else ", ".join(map(str, run)) for run in runs]
    return ", ".join(texts)


def numbered(noun: str, values: Iterable[int]) -> str:
    """Name things by their numbers: `session 4`, `sessions 4–6`."""
    numbers = set(values)
    return f"{noun}{'s' * (len(numbers) > 1)} {ranges(numbers)}"


def joined(words: Sequence[str], last: str = "and") -> str:
    """List words in a sentence: `a, b and c`."""
    return f" {last} ".join(filter(None, (", ".join(words[:-1]), words[-1])))


def percent_of(share: float) -> str:
    """Write a share as a percentage: 0.95 as `95`, 0.975 as `97.5`."""
    return f"{100 * share:.4g}"


def first_rounds_named(count: int) -> str:
    """Name a session's first rounds: `first 10 rounds`, or `first round`."""
    return f"first {count} rounds" if count > 1 else "first round"


def amount(value: float, decimals: int | None = None) -> str:
    """Write a number with three significant digits or the given decimals, thousands separated, no exponent."""
    if not math.isfinite(value):
        return "∞" if value > 0 else NOTHING
    return f"{value:z,.{_decimals_of(value) if decimals is None else decimals}f}"


def lower_bound(value: float) -> str:
    """Write a number as `amount` does, but rounded down, so that what exceeds the number exceeds the text, too."""
    if not math.isfinite(value):
        return amount(value)
    decimals = _decimals_of(value)
    return amount(math.floor(value * 10**decimals + ROUNDING) / 10**decimals, decimals)


def amount_beside(value: float, spread: float) -> str:
    """Write a number as `amount` does; a number far smaller than its spread gets the spread's decimals."""
    if not math.isfinite(value):
        return amount(value)
    text = amount(value, _decimals_beside(value, spread))
    return text if text.strip("-0.") else "0"


def _decimals_beside(value: float, spread: float) -> int:
    return _decimals_of(spread if 10 * abs(value) < spread < math.inf else value)


def _decimals_of(value: float) -> int:
    """Return how many decimals give a number three significant digits; 0 if it is 100 or more."""
    exponent = int(f"{value:.2e}".partition("e")[2])  # exponent after rounding: 9.996 becomes 10.0
    return 0 if value == 0 else max(0, 2 - exponent)


def unit_for(values: Iterable[float], units: Units) -> tuple[str, float]:
    """Choose the largest unit in which the largest finite value is at least 1."""
    largest = max((value for value in values if math.isfinite(value)), default=0.0)
    fitting = [unit for unit in units if largest >= unit[1]]
    return (fitting or [units[0]])[-1]


def with_unit(value: float, units: Units, blank: str = " ") -> str:
    """Write a number in the unit that fits its size: `42.5 ms`."""
    unit, size = unit_for([abs(value)], units)
    return f"{amount(value / size)}{blank}{unit}"


def with_spread(mean: float, std: float, decimals: int | None = None) -> str:
    """Write `mean ± std`, or only the mean if the standard deviation is unknown or the mean infinite."""
    if not math.isfinite(mean):
        return amount(mean)
    text = amount_beside(mean, std) if decimals is None else amount(mean, decimals)
    decimals = _decimals_beside(mean, std) if decimals is None else decimals
    return text if math.isnan(std) else f"{text} ± {amount(std, decimals)}"


def spreads(
    table: Mapping[str, Iterable[float]],
    name: str,
    ending: str = "std",
    *,
    decimals: int | None = None,
    scale: float = 1.0,
    size: float = 1.0,
) -> list[str]:
    """Write the columns NAME_mean and NAME_std (or another ending) as text, divided by the size of a unit."""
    pairs = zip(table[f"{name}_mean"], table[f"{name}_{ending}"], strict=True)
    return [with_spread(mean * scale / size, std * scale / size, decimals) for mean, std in pairs]


def with_interval(mean: float, low: float, high: float) -> str:
    """Write `mean (low–high)`, or only the mean if the interval is unknown."""
    if math.isnan(mean) or math.isnan(low):
        return amount(mean)
    below, above = mean - low, high - mean
    ends = f"{amount_beside(low, below)}–{amount_beside(high, above)}"
    return f"{amount_beside(mean, min(below, above))} ({ends})"


def named_seeds(seeds: Sequence[int], interval: bool = False, own: Sequence[int] = ()) -> str:
    """Describe a table's number of seeds and the meaning of ±, or name its only seed.

    Runs of different seeds that are compared as runs of one seed are named by their own seeds.
    """
    if len(seeds) > 1:
        return f"{len(seeds)} seeds, mean ± {'95 % interval (t)' if interval else 'standard deviation'}"
    return numbered("seed", own or seeds)


def ending_in(file: str | Path, *endings: str) -> Path:
    """Return the path of a file to write; refuse names with other endings, so that no other file is overwritten."""
    if Path(file).suffix.lower() not in endings:
        raise ValueError(f"--out {file}: give a name that ends in {joined(endings, 'or')}")
    return Path(file)


def placed(error: ValueError, runs: str | Path | Sequence[str | Path]) -> str:
    """Prefix an error about runs with the runs' folders, unless the error names one of the folders."""
    folders = [str(one) for one in ([runs] if isinstance(runs, str | Path) else runs)]
    message = str(error)
    named = not folders or any(one in message for one in folders)
    return message if named else f"{', '.join(folders)}: {message}"
