"""Train in a second process while the engine runs in the first; results are byte for byte those of a single process.

A run begins in one process. Once its training has taken `FORKS_AFTER_S`, the process forks: the child continues with
the learners and the journal, the parent with the engine. From then on the parent forwards the engine's
calls to the learners through a socket, in the engine's order, so that every answer and every line of the journal is
the same as in a single-process run. If training cannot change a round's amounts of work, the child reports them
before it trains: the engine then simulates the round's transfers while the child trains, and waits only when it needs
a score.
"""

import ctypes
import gc
import os
import select
import signal
import socket
import sys
import threading
import time
import warnings
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, fields
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any, NoReturn, ParamSpec, Self

from edgefl.contract import BEGIN, LocalRound, LocalRoundUnderWay, Now
from edgefl.errors import EdgeflError
from edgefl.learners import messages
from edgefl.run_directory.interruption import Interrupted, held, interrupt
from edgefl.run_directory.journal import Journal
from edgefl.run_directory.questions import Answering

if TYPE_CHECKING:
    from edgefl.learning.federation.learner import TorchLearner

FORKS_AFTER_S = 0.2  # the fork, and the copies of memory that follow, take some hundredths of a second
OURS = "edgefl "  # name prefix of threads that hold no lock while a round begins
NOT_WAITED_FOR = ("aggregate", "adopt")  # calls whose answer the engine does not wait for
Given = ParamSpec("Given")
_DIE_WITH_PARENT = 1  # PR_SET_PDEATHSIG of Linux's prctl


def may_fork(threads: int, torch_device: Any, code: Mapping[str, str]) -> bool:
    """Return whether a run's training may move to a process of its own.

    The libraries allow a fork on Linux only, and only before they use a GPU. Where PyTorch sees a GPU, even training
    on the CPU starts a thread for the GPU, and PyTorch refuses to compute gradients in a process forked afterwards.
    With one thread for training, a second process gains nothing. A run with external components does not fork,
    because these components may print.
    """
    if sys.platform != "linux" or threads < 2 or code or torch_device.type != "cpu":
        return False
    from torch import accelerator  # PyTorch was loaded with the learners

    return not accelerator.is_available()


def _is_safe() -> bool:
    """Return whether a fork is safe: any lock that another thread held would stay locked in the child."""
    return all(
        thread is threading.current_thread()
        or thread.name.startswith(OURS)
        or type(thread).__module__.startswith("rich.")
        for thread in threading.enumerate()
    )


@dataclass
class _Answer:
    """A learner's answer, which may be pending; `work` holds amounts of work that arrive before the answer."""

    work: LocalRound | None = None
    is_there: bool = False
    value: Any = None


class _LearnerBeside(Answering):
    """A server's learner that passes each question to the run's training process."""

    def __init__(self, own: Answering, number: int, process: "TrainingProcess") -> None:
        super().__init__(own.at.cell, own.flops_per_sample, own.payload_bits, own.sees_time)
        self.own, self._number, self._process = own, number, process

    def answer(self, call: str, asked: Mapping[str, Any], now: Now = BEGIN) -> Any:
        return self._process.ask(messages.Question(self._number, self.at, self.facts, call, asked, now))


class TrainingProcess:
    """The process in which a run's learners train: the engine's process at first, perhaps a forked child later.

    Use the result of `around` as a context manager: on exit, the process that writes the journal closes the journal.

    Args:
        path: directory of the run.
        forks: whether training may move to a child process.
        trained: the learners that train with PyTorch.
    """

    def __init__(self, path: Path, *, forks: bool, trained: Sequence["TorchLearner"] = ()) -> None:
        self._path, self._forks, self._trained = path, forks, trained
        self._ready: Callable[[], bool] = lambda: True
        self._learners: list[_LearnerBeside] = []
        self._functions: list[Callable[..., Any]] = []  # both processes identify a function by its index
        self._spent_s = 0.0  # time spent on training in this process
        self._socket: socket.socket | None = None
        self._child = 0  # the child's process id; 0 in the child itself
        self._answers: deque[_Answer] = deque()  # pending answers of the child, oldest first
        self._failure: BaseException | None = None  # the child's error
        self._left = False
        self._works = self._stops = False  # in the child: whether it is answering, and whether it must stop
        self._foretold: LocalRound | None = None

    def around(self, journal: Journal, ready: Callable[[], bool]) -> Self:
        """Set the run's journal, and return this object.

        Args:
            ready: whether the learners train; if not, they return recorded answers.
        """
        self._journal, self._ready = journal, ready
        return self

    def learner(self, own: Answering) -> Answering:
        """Return a learner that answers in this process before the fork, and in the child afterwards."""
        if not self._forks:
            return own
        self._learners.append(_LearnerBeside(own, len(self._learners), self))
        return self._learners[-1]

    def told(self, function: Callable[Given, None]) -> Callable[Given, None]:
        """Wrap a function that training calls, so that it runs in the process that began the run."""
        self._functions.append(function)
        number = len(self._functions) - 1

        def tell(*given: Given.args, **named: Given.kwargs) -> None:
            if self._socket is not None and not self._child:
                self._reply("told", (number, given, named))
            else:
                function(*given, **named)

        return tell

    def done(self, function: Callable[[], None]) -> Callable[[], None]:
        """Wrap a function that the process that began the run calls, so that it runs in the training process."""
        self._functions.append(function)
        number = len(self._functions) - 1
        return lambda: function() if self._socket is None else self._wait_for(self._send("do", number))

    def ask(self, question: messages.Question) -> Any:
        """Return a learner's answer; the answer to `train` may still lack scalars, and reading them then waits."""
        if self._socket is None and question.call == "train" and self._is_due():
            self._fork()
        if self._socket is None:
            began = time.perf_counter()
            answered = self._answered(question)
            self._spent_s += time.perf_counter() - began
            return answered
        answer = self._send("question", question)
        if question.call in NOT_WAITED_FOR:
            return None
        if question.call == "train":
            self._until(lambda: answer.is_there or answer.work is not None)
            if not answer.is_there:
                known = {one.name: getattr(answer.work, one.name) for one in fields(LocalRound)}
                known["ids"] = tuple(question.asked["ids"])  # the learner may number devices from 0
                return LocalRoundUnderWay(**known, whole=lambda: self._wait_for(answer))
        return self._wait_for(answer)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if self._socket is None:
            self._journal.__exit__(kind, error, trace)
            return
        try:
            if error is not None:  # the result that the child is computing is no longer needed
                os.kill(self._child, signal.SIGUSR1)
            self._send("leave", (error is not None, isinstance(error, KeyboardInterrupt)))
            self._until(lambda: self._left, raises=error is None)
        except BaseException:
            os.kill(self._child, signal.SIGKILL)
            if error is None:
                raise
        finally:
            with suppress(ChildProcessError):
                os.waitpid(self._child, 0)
            self._socket.close()
            self._journal.close()

    def _is_due(self) -> bool:
        return self._forks and self._spent_s >= FORKS_AFTER_S and self._ready() and _is_safe()

    def _fork(self) -> None:
        ours, theirs = socket.socketpair()
        parent = os.getpid()
        with warnings.catch_warnings():  # Python warns about forking with threads, but these threads are idle
            warnings.simplefilter("ignore", DeprecationWarning)
            try:
                child = os.fork()
            except OSError:  # if there is no memory for another process, training continues in this process
                self._forks = False
                ours.close()
                theirs.close()
                return
        self._child, self._socket = child, ours if child else theirs
        (theirs if child else ours).close()
        if not child:
            self._serve(parent)

    def _answered(self, question: messages.Question) -> Any:
        own = self._learners[question.learner].own
        own.at, own.facts = question.at, question.facts
        return own.answer(question.call, question.asked, question.now)

    # -- in the process that began the run -----------------------------------------------------------

    def _send(self, kind: str, content: Any) -> _Answer:
        """Send a message to the child, and receive the child's messages meanwhile, so that neither side blocks."""
        assert self._socket is not None
        self._answers.append(answer := _Answer())
        left = memoryview(messages.packed(kind, content))
        with held():
            while left:
                comes, _, _ = select.select([self._socket], [self._socket], [])
                if comes:
                    self._receive()
                else:
                    with suppress(BrokenPipeError):  # the child has ended, so nobody reads the rest
                        left = left[self._socket.send(left, socket.MSG_DONTWAIT) :]
        return answer

    def _wait_for(self, answer: _Answer) -> Any:
        self._until(lambda: answer.is_there)
        return answer.value

    def _until(self, enough: Callable[[], bool], *, raises: bool = True) -> None:
        """Receive messages from the child until `enough` returns True.

        Args:
            raises: whether to raise an error that the child reports on this question or on an earlier question.
        """
        assert self._socket is not None
        while True:
            if self._failure is not None and raises:
                raise self._failure
            if enough():
                return
            select.select([self._socket], [], [])  # outside of `held`: a signal interrupts this wait
            with held():
                self._receive()

    def _receive(self) -> None:
        """Receive and handle one message from the child process.

        Raises:
            EdgeflError: the child process has ended.
        """
        assert self._socket is not None
        try:
            kind, content = messages.read(self._socket)
        except (EOFError, OSError) as gone:
            raise EdgeflError(
                f"{self._path}: the training process has ended, possibly for lack of memory; continue the run with"
                f" edgefl resume {self._path}"
            ) from gone
        if kind == "told":
            number, given, named = content
            self._functions[number](*given, **named)
        elif kind == "left":
            self._left = True
        elif kind == "error":
            self._failure = self._failure or content
        elif kind == "work":
            self._answers[0].work = content
        else:
            answer = self._answers.popleft()
            answer.is_there, answer.value = True, content

    # -- in the child --------------------------------------------------------------------------------

    def _serve(self, parent: int) -> NoReturn:
        """Answer the parent's questions until the parent sends `leave` or dies; then end this process."""
        assert self._socket is not None
        try:
            ctypes.CDLL(None).prctl(_DIE_WITH_PARENT, signal.SIGKILL)
            for name in ("SIGINT", "SIGTERM", "SIGHUP"):  # the parent decides when training ends
                signal.signal(getattr(signal, name), signal.SIG_IGN)
            signal.signal(signal.SIGUSR1, self._stop)
            gc.freeze()  # a garbage collection would write to all memory pages, and so copy them
            for learner in self._trained:
                learner.hooks.foretell = self._foretell
            goes_on = os.getppid() == parent
            while goes_on:
                goes_on = self._obey(*messages.read(self._socket))
        finally:
            os._exit(0)

    def _obey(self, kind: str, content: Any) -> bool:
        """Handle a message from the parent, and reply; return whether to wait for another message."""
        leaves, answered = kind == "leave", None
        if self._failure is not None and not leaves:  # the parent has received the error
            return True
        try:
            if leaves:
                failed, interrupted = content
                error = Interrupted() if interrupted else EdgeflError("") if failed else None
                self._journal.__exit__(type(error) if error else None, error, None)
            else:
                self._works, self._question, self._foretold = True, content, None
                if self._stops:
                    interrupt(signal.SIGINT)
                answered = self._functions[content]() if kind == "do" else self._answered(content)
                self._works = False
                if self._foretold is not None and _amounts(answered) != _amounts(self._foretold):
                    raise RuntimeError(f"{content.at}: the amounts of work differ before and after training")
        except BaseException as error:
            self._works, self._failure = False, error
            self._reply("error", messages.carried(error))
        else:
            self._reply("left" if leaves else "answer", answered)
        return not leaves

    def _foretell(self, work: LocalRound, round_: int) -> None:
        """Send a round's amounts of work before its training, unless it repeats a round of an interrupted run."""
        question = self._question
        if question.call == "train" and question.asked["round"] == round_:
            self._foretold = work
            self._reply("work", work)

    def _stop(self, number: int, frame: FrameType | None) -> None:
        """Handle SIGUSR1: interrupt the child's current call, or its next call."""
        self._stops = True
        if self._works:
            interrupt(signal.SIGINT)

    def _reply(self, kind: str, content: Any) -> None:
        assert self._socket is not None
        with held():
            self._socket.sendall(messages.packed(kind, content))


def _amounts(work: LocalRound) -> tuple[Sequence[int], ...]:
    return work.iterations, work.samples, work.down_bits, work.up_bits
