"""A thread pool that works through a list of jobs and includes the calling thread."""

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import torch

Job = TypeVar("Job")


class ThreadPool:
    """A pool of threads, including the calling thread, in which each free thread takes the next job.

    PyTorch's operations run single-threaded in these threads, so that results do not depend on the number of threads.
    """

    def __init__(self, count: int) -> None:
        self.count = count
        self._pool: ThreadPoolExecutor | None = None
        self._process = 0  # id of the process that started the threads, which a forked process lacks

    def work(self, do: Callable[[int, Job], None], jobs: Sequence[Job]) -> None:
        """Call do(hand, job) once for each job; `hand` is the number of the thread, 0 for the calling thread."""
        waiting = iter(jobs)

        def some(hand: int) -> None:
            for job in waiting:
                do(hand, job)

        helpers = range(1, min(self.count, len(jobs)))
        under_way = [self._threads().submit(some, hand) for hand in helpers]
        some(0)
        for done in under_way:
            done.result()

    def _threads(self) -> ThreadPoolExecutor:
        if self._pool is None or self._process != os.getpid():
            # PyTorch's operations use one thread each, since jobs already run in parallel
            self._pool = ThreadPoolExecutor(self.count - 1, "edgefl training", torch.set_num_threads, (1,))
            self._process = os.getpid()
        return self._pool
