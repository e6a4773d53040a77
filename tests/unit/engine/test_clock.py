"""Test that an error ends a run at once, before any other event at that time, and is raised unchanged."""

import os
import signal
from collections.abc import Generator

import pytest
import simpy

from edgefl.engine.clock import Clock
from edgefl.errors import EdgeflError
from edgefl.run_directory.interruption import Interrupted, interruptible


@pytest.mark.parametrize("interrupted", [True, False])
def test_nothing_goes_on_in_the_moment_of_an_error(interrupted: bool) -> None:
    """If two cells act on the same event and the first cell raises an error, the second cell does not act."""
    env, acted = Clock(), list[str]()
    moment = env.timeout(1.0)

    def cell(name: str, *, fails: bool) -> Generator[simpy.Event, None, None]:
        yield moment
        acted.append(name)
        if fails and interrupted:
            os.kill(os.getpid(), signal.SIGTERM)
        if fails:
            raise EdgeflError("a full disk")

    def run() -> None:
        env.process(cell("first", fails=True))
        env.process(cell("second", fails=False))
        with interruptible():
            env.run()

    with pytest.raises(Interrupted if interrupted else EdgeflError):
        run()
    assert acted == ["first"]


def test_who_waits_for_a_process_that_fails_does_not_take_its_error_for_what_it_returns() -> None:
    env, returned = Clock(), list[object]()
    error = EdgeflError("the transfer does not end", ("radio",))

    def device() -> Generator[simpy.Event, None, int]:
        yield env.timeout(1.0)
        raise error

    def server(process: simpy.Process) -> Generator[simpy.Event, None, None]:
        process.callbacks.append(lambda ended: returned.append(ended.value))
        yield process

    env.process(server(env.process(device())))
    with pytest.raises(EdgeflError) as told:
        env.run()
    assert told.value is error
    assert returned == []


def test_interrupts_and_what_processes_return_are_as_in_simpy() -> None:
    env, seen = Clock(), list[object]()

    def device() -> Generator[simpy.Event, None, str]:
        try:
            yield env.timeout(9.0)
        except simpy.Interrupt as interrupt:
            return str(interrupt.cause)
        return "late"

    def server() -> Generator[simpy.Event, None, None]:
        process = env.process(device())
        yield env.timeout(1.0)
        process.interrupt("cut off")
        seen.append((yield process))

    env.process(server())
    env.run()
    assert seen == ["cut off"]
