"""Test that signals end a run between two steps, and not within a step."""

import os
import signal

import pytest

from edgefl.run_directory.interruption import Interrupted, held, interruptible


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_interrupts(number: signal.Signals) -> None:
    before = signal.getsignal(number)
    with pytest.raises(Interrupted) as error, interruptible():
        os.kill(os.getpid(), number)
    assert error.value.exit_code == 128 + number
    assert signal.getsignal(number) == before


def test_what_is_ignored_stays_ignored() -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with interruptible():
            os.kill(os.getpid(), signal.SIGHUP)
    finally:
        signal.signal(signal.SIGHUP, before)


def twice(times: int, done: list[str]) -> None:
    with interruptible(), held():
        with held():
            for _ in range(times):
                os.kill(os.getpid(), signal.SIGINT)
            done.append("inner")
        done.append("outer")


@pytest.mark.parametrize(("times", "done"), [(1, ["inner", "outer"]), (2, [])])
def test_a_signal_waits_and_a_second_one_does_not(times: int, done: list[str]) -> None:
    found: list[str] = []
    with pytest.raises(Interrupted):
        twice(times, found)
    assert found == done
    with interruptible(), held():
        pass  # no file remains


def test_pickle_can_rebuild_it() -> None:
    error = Interrupted(signal.SIGTERM)
    assert type(error)(*error.args).exit_code == 143
