"""Test that random streams are keyed by name and not by order."""

import numpy as np
import pytest

from edgefl.rng import Streams


def test_a_stream_does_not_depend_on_what_else_is_drawn() -> None:
    first = Streams(1)
    first("fading", 3).random(100)
    assert np.array_equal(first("drop").random(8), Streams(1)("drop").random(8))


def test_streams_differ_by_every_part_of_their_name_and_by_seed() -> None:
    draws = [
        Streams(seed)(*path).random()
        for seed, path in [
            (1, ("a",)),
            (2, ("a",)),
            (1, ("b",)),
            (1, ("a", 1)),
            (1, ("a", 2)),
            (1, (1, "a")),
            (1, ("a", 1, 2)),
        ]
    ]
    assert len(set(draws)) == len(draws)


def test_known_values() -> None:
    """A stream's key consists of CRC-32 sums of names, and numbers, so it is equal in every process and version."""
    expected = np.random.Generator(
        np.random.PCG64(np.random.SeedSequence(100, spawn_key=(_crc32(b"drop"), 5)))
    ).random(4)
    assert np.array_equal(Streams(100)("drop", 5).random(4), expected)


def test_key_has_128_bits_and_differs_by_name() -> None:
    keys = {Streams(1).key("fading", device) for device in range(100)}
    assert len(keys) == 100
    assert max(keys).bit_length() > 64


def _crc32(data: bytes) -> int:
    """Compute CRC-32 of IEEE 802.3, bit by bit."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0xEDB88320 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


@pytest.mark.parametrize("seed", [0, 100, 2**32 - 1, 2**40, 2**130 + 5])
@pytest.mark.parametrize("path", [("indoors",), ("mobility", "path"), ("day", 7), ("far", 2**33)])
def test_keys_of_many_numbers_are_those_that_seed_sequence_gives_one_by_one(
    seed: int, path: tuple[str | int, ...]
) -> None:
    for streams in (Streams(seed), Streams(seed).below("cell", 3)):
        one_by_one = [streams.key(*path, number) % 2**64 for number in range(300)]
        assert streams.low_keys(path, 300).tolist() == one_by_one
        for number, stream in enumerate(streams.in_turn(path, range(300))):
            assert stream.random() == streams(*path, number).random()
        some = [7, 0, 2**32 - 1, *range(20, 30)]
        for behind in ((5,), ("round", 0, 2**40)):
            for many in (some, some[:2]):
                found = [stream.random() for stream in streams.in_turn(path, many, *behind)]
                assert found == [streams(*path, number, *behind).random() for number in many]
