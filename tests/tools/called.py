"""Call `edgefl` in this process: a new one waits for seconds until PyTorch is loaded."""

import pytest

from edgefl.commands.cli import main


def code_of(*words: object) -> int:
    """Return with what code a command ends."""
    with pytest.raises(SystemExit) as ended:
        main([str(word) for word in words])
    return int(ended.value.code or 0)
