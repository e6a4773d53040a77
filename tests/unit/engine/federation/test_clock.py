"""The clock of a run: an error ends it at once, with nothing done after it, and is the error itself."""

import os
import signal
from collections.abc import Callable, Generator

import pytest
import simpy

from edgefl.engine.federation.clock import Clock
from edgefl.run_directory.interruption import Interrupted, interruptible


class Stubborn(Exception):
    """One that cannot be made from its arguments, as those of pydantic and json cannot."""

    def __init__(self, what: str, where: str) -> None:
        super().__init__(f"{what} {where}")


def fail() -> None:
    raise Stubborn("mine", "here")


def be_interrupted() -> None:
    os.kill(os.getpid(), signal.SIGINT)


@pytest.mark.parametrize(("end", "error"), [(fail, Stubborn), (be_interrupted, Interrupted)])
@pytest.mark.parametrize("waits", ["each for itself", "for one event", "for a part"])
def test_nothing_goes_on_in_the_moment_of_an_error(
    end: Callable[[], None], error: type[BaseException], waits: str
) -> None:
    env, acted = Clock(), list[str]()
    together = env.timeout(1.0)

    def part() -> Generator[simpy.Event, None, None]:
        yield env.timeout(1.0)
        end()

    def cell(name: str, *, fails: bool) -> Generator[simpy.Event, None, None]:
        if fails and waits == "for a part":
            yield env.process(part())
        else:
            yield together if waits == "for one event" else env.timeout(1.0)
            if fails:
                end()
        yield env.timeout(0.0)
        acted.append(name)

    def run() -> None:
        with interruptible():
            ends = [env.process(cell(name, fails=name == "first")) for name in ("first", "second", "third")]
            env.run(until=env.all_of(ends))

    with pytest.raises(error):
        run()
    assert env.now == 1.0
    assert acted == []
