"""Random streams that are identified by name, not by the order of their use.

Two runs that request the same stream get the same numbers, regardless of their other draws. Adding a device or
replacing the algorithm therefore leaves all other draws unchanged, and all variants of a study run in the same world.
"""

import zlib
from collections.abc import Iterator, Sequence

import numpy as np

__all__ = ["Streams"]


# NumPy's SeedSequence: words in its pool, and the constants of its hash and mixing functions
_POOL, _WORD = 4, 0xFFFFFFFF
_FIRST_IN, _NEXT_IN, _FIRST_OUT, _NEXT_OUT = 0x43B0D7E5, 0x931E8875, 0x8B51F9DD, 0x58F38DED
# PCG64's step (O'Neill, 2014), modulo 2^128
_PCG_FACTOR, _PCG_STATE = 0x2360ED051FC65DA44385DF649FCCF645, (1 << 128) - 1
_FROM = 8  # minimum number of streams whose states are computed faster together than one by one
_LEFT, _RIGHT = 0xCA01F9DD, np.uint64(0x4973F715)


class Streams:
    """Independent generators keyed by names and numbers, derived from one seed."""

    def __init__(self, seed: int, prefix: tuple[str | int, ...] = ()) -> None:
        self.seed = seed
        self._prefix = prefix  # prefix of every stream's name

    def below(self, *path: str | int) -> "Streams":
        """Return the streams below a path of names, for one of several objects that use the same stream names."""
        return Streams(self.seed, (*self._prefix, *path))

    def _sequence(self, path: tuple[str | int, ...]) -> np.random.SeedSequence:
        path = (*self._prefix, *path)
        key = tuple(map(_number, path))
        return np.random.SeedSequence(self.seed, spawn_key=key)

    def __call__(self, *path: str | int) -> np.random.Generator:
        """Return a new generator at the start of the named stream, e.g. `streams("batches", device, round)`."""
        return np.random.Generator(np.random.PCG64(self._sequence(path)))

    def low_keys(self, path: tuple[str | int, ...], count: int) -> np.ndarray:
        """Return the lower 64 bits [count] of `key(*path, number)` for numbers from 0, vectorised."""
        return self._states(path, range(count), (), 1)[:, 0]

    def in_turn(
        self, path: tuple[str | int, ...], numbers: Sequence[int], *behind: str | int
    ) -> Iterator[np.random.Generator]:
        """Yield the stream `(*path, number, *behind)` of each number; a stream is valid until the next request.

        For many numbers, all below 2^32, a single generator is reset to the start of each stream, which takes a fifth
        of the time of creating generators.
        """
        if len(numbers) < _FROM:
            yield from (self(*path, number, *behind) for number in numbers)
            return
        bits = np.random.PCG64(0)
        generator = np.random.Generator(bits)
        for words in self._states(path, numbers, behind, 4).tolist():
            first, increment = words[0] << 64 | words[1], (words[2] << 65 | words[3] << 1 | 1) & _PCG_STATE
            state = ((increment + first) * _PCG_FACTOR + increment) & _PCG_STATE
            bits.state = {
                "bit_generator": "PCG64",
                "state": {"state": state, "inc": increment},
                "has_uint32": 0,
                "uinteger": 0,
            }
            yield generator

    def _states(
        self, path: tuple[str | int, ...], numbers: Sequence[int], behind: tuple[str | int, ...], words: int
    ) -> np.ndarray:
        """Return the outputs [numbers, words], of 64 bits each, of the seed sequences `(*path, number, *behind)`.

        SeedSequence first mixes the seed and the path into a pool of words, which is the same for all numbers; here
        numbers and later parts of the name are mixed into it, for all numbers at once (O'Neill's `seed_seq`).
        """
        before = self._sequence(path).pool.tolist()
        told = max(_POOL, _words(self.seed)) + sum(_words(part) for part in (*self._prefix, *path))
        constant = _FIRST_IN * pow(_NEXT_IN, _POOL**2 + _POOL * (told - _POOL), 1 << 32) & _WORD
        pool = [np.array(word, np.uint64) for word in before]
        for word in (np.asarray(numbers, np.uint64), *(one for part in behind for one in _split(part))):
            for place in range(_POOL):
                hashed, constant = _hashed(word, constant, _NEXT_IN)
                mixed: np.ndarray = pool[place] * np.uint64(_LEFT) - hashed * _RIGHT
                pool[place] = _folded(mixed & np.uint64(_WORD))
        states, constant = np.empty((len(numbers), words), np.uint64), _FIRST_OUT
        for place in range(words):
            low, constant = _hashed(pool[2 * place % _POOL], constant, _NEXT_OUT)
            high, constant = _hashed(pool[(2 * place + 1) % _POOL], constant, _NEXT_OUT)
            states[:, place] = low | high << np.uint64(32)
        return states

    def key(self, *path: str | int) -> int:
        """Return a 128-bit key of the named stream, for counter-based generators with random access."""
        low, high = self._sequence(path).generate_state(2, np.uint64)
        return int(low) | int(high) << 64


def _words(part: str | int) -> int:
    """Return the number of 32-bit words that SeedSequence makes from a part of a stream's name."""
    return 1 if isinstance(part, str) else max(1, -(-part.bit_length() // 32))


def _number(part: str | int) -> int:
    """Convert a part of a stream's name to a number."""
    # crc32, not hash(): Python salts hash() in every process
    return zlib.crc32(part.encode()) if isinstance(part, str) else part


def _split(part: str | int) -> list[np.ndarray]:
    """Return the 32-bit words that SeedSequence makes from a part of a stream's name."""
    number = int(_number(part))
    return [np.array(number >> 32 * i & _WORD, np.uint64) for i in range(_words(number))]


def _hashed(values: np.ndarray, constant: int, factor: int) -> tuple[np.ndarray, int]:
    """Return SeedSequence's hash of 32-bit words, held in 64 bits, and the constant for the next call."""
    after = constant * factor & _WORD
    return _folded((values ^ np.uint64(constant)) * np.uint64(after) & np.uint64(_WORD)), after


def _folded(values: np.ndarray) -> np.ndarray:
    return values ^ values >> np.uint64(16)
