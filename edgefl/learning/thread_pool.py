"""A pool of threads, including the caller's, that works off a list of jobs."""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import torch

Job = TypeVar("Job")


class ThreadPool:
    """A number of threads, including the caller's; each free thread takes the next job.

    PyTorch's operations run single-threaded in them, so that results do not depend on the number of threads.
    """

    def __init__(self, count: int) -> None:
        self.count = count
        self._pool = ThreadPoolExecutor(count - 1, initializer=_one_thread_each) if count > 1 else None

    def work(self, do: Callable[[int, Job], None], jobs: Sequence[Job]) -> None:
        """Call do(hand, job) once for each job; `hand` is the thread's number, 0 to count - 1, 0 for the caller."""
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
    """Make operations of this thread single-threaded; jobs run in parallel instead."""
    torch.set_num_threads(1)
