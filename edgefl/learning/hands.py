"""Threads that work off a list of jobs together with the one that asks."""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import torch

Job = TypeVar("Job")


class Hands:
    """A number of threads, the caller's among them; whoever is free takes the next job.

    So that results do not depend on how many there are, none of PyTorch's operations has helpers in them.
    """

    def __init__(self, count: int) -> None:
        self.count = count
        self._pool = ThreadPoolExecutor(count - 1, initializer=_one_thread_each) if count > 1 else None

    def work(self, do: Callable[[int, Job], None], jobs: Sequence[Job]) -> None:
        """Call do(hand, job) once for each job; `hand` is whose it is, 0 to count - 1, and 0 is the caller's."""
        waiting = iter(jobs)

        def some(hand: int) -> None:
            for job in waiting:
                do(hand, job)

        helpers = range(1, min(self.count, len(jobs)))
        under_way = [self._pool.submit(some, hand) for hand in helpers] if self._pool else []
        some(0)
        for done in under_way:
            done.result()


def _one_thread_each() -> None:
    """Let this thread's operations have no helpers: jobs are done side by side instead."""
    torch.set_num_threads(1)
