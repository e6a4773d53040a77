"""When a command's process looks for cycles of objects."""

import gc
import subprocess
import sys

from edgefl.commands import garbage
from edgefl.commands.cli import main


def test_as_often_as_usual_from_the_first_round_on() -> None:
    try:
        with garbage.seldom_looked_for():
            assert gc.get_threshold() == (garbage.AT_START, *garbage.USUAL[1:])
            garbage.look_as_usual()
            assert gc.get_threshold() == garbage.USUAL
            assert gc.get_freeze_count() > 0, "what is loaded stays"
        with garbage.seldom_looked_for():
            pass
        assert gc.get_threshold() == garbage.USUAL
    finally:
        gc.unfreeze()


def test_a_process_does_not_look_when_it_ends() -> None:
    """What is registered first is called last, and sees what the command has left."""
    code = (
        "import atexit, gc; atexit.register(lambda: print('frozen' if gc.get_freeze_count() else 'looks'));"
        f" from {main.__module__} import main; main(['--version'])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "frozen"
