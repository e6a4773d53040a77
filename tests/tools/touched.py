"""Count the files outside a feature's packages that name the feature in two lines or more.

python -m tests.tools.touched           `make touched`: the table
python -m tests.tools.touched --files   with the names of the files

If a name is replaced, the new name must be added to the pattern; otherwise code that uses it is not counted.
"""

import argparse
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
SOURCES = ("edgefl", "channel", "analysis")
LEAST_LINES = 2


@dataclass(frozen=True)
class Feature:
    """A feature of several components.

    Args:
        words: regular expression of the names that code uses for the feature.
        own: parts of the paths to the feature's own packages.
        most: largest allowed number of files that name the feature outside these packages.
    """

    words: str
    own: tuple[str, ...]
    most: int


FEATURES = {
    "codecs": Feature(r"codec|Codec|compression|Compression", ("learning/codecs", "updates/transfers"), 5),
    "deciders": Feature(
        r"[Dd]ecider|Deciding|selectors import .*Decision|Candidates|deciding|Expected\b|Outlook\b|asks_loss"
        r"|asks_norm",
        ("engine/selectors", "testing/", "federation/deciding"),
        10,
    ),
    "several federations": Feature(
        r"[Ff]ederations?\b.*name|Seat\b|\bseat\b|federation_settings|\bfederation=|FEDERATION|overlap\.py|shared_cells"
        r"|\.federations|self\._label\b|[sS]eat\S*\.label\b",
        (
            "federation/by_federation",
            "federation/federations",
            "scenario/federation_settings",
            "scenario/own_sections",
        ),
        10,
    ),
    "asynchronous servers": Feature(
        r"overlapping|Overlapping|staleness|Staleness|WorkUnderWay|StaleW|\._?overlaps\b|rounds\.overlap\b",
        ("engine/servers", "testing/", "federation/observers", "federation/work"),
        7,
    ),
    "cloud": Feature(r"[Cc]loud", ("testing/", "federation/cloud"), 6),
    # epsilon as a column or a function, but not the constant that optimisers add to a root
    "privacy": Feature(
        r"[Pp]rivacy|EPSILON|[\"']epsilon|epsilon_of|(?<!self)\.epsilon\b",
        ("learning/privacy", "updates/release"),
        2,
    ),
    "drift": Feature(
        r"learning\.drifts|[Dd]rifting|\bdrifted|knows_drift|both_concepts|settings\.drift|[Dd]riftComparison"
        r"|measures\.drift",
        (
            "learning/drifts",
            "federation/drifting",
            "testing/",
            "measures/drift",
            "reports/drift",
            "figures/drift",
        ),
        5,
    ),
    "loss on air": Feature(
        r"lost_(up|down)link|Lost|loss_on_air|packet_error|PacketError|decoded|radio_lost|LOST",
        ("channel/packet_errors",),
        13,
    ),
    "Ray": Feature(r"\bray\b|Ray\b|on_ray", ("on_ray", "ray_cluster"), 1),
}


def files_that_know(feature: Feature, root: Path = ROOT) -> dict[str, int]:
    """Return the files outside a feature's packages that name the feature, with the number of lines that name it."""
    found = {}
    for path, text in _texts(root).items():
        lines = sum(bool(re.search(feature.words, line)) for line in text.splitlines())
        if lines >= LEAST_LINES and not any(room in path for room in feature.own):
            found[path] = lines
    return found


@cache
def _texts(root: Path) -> dict[str, str]:
    """Return the text of each file of the program by its path from the root."""
    files = (file for source in SOURCES for file in sorted((root / source).rglob("*.py")))
    return {file.relative_to(root).as_posix(): file.read_text() for file in files}


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--files", action="store_true", help="also list the files")
    files = parser.parse_args().files
    for name, feature in FEATURES.items():
        found = files_that_know(feature)
        print(f"{name:22s} {len(found):3d} of {feature.most:2d} files, {sum(found.values()):4d} lines")
        if files:
            for path, lines in sorted(found.items(), key=lambda one: -one[1]):
                print(f"    {lines:3d} {path}")


if __name__ == "__main__":
    main()
