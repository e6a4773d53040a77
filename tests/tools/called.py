"""Call `edgefl` in this process, because a new process would take seconds to load PyTorch."""

import pytest

from edgefl.commands.cli import main


def code_of(*words: object) -> int:
    """Run a command and return its exit code."""
    with pytest.raises(SystemExit) as ended:
        main([str(word) for word in words])
    return int(ended.value.code or 0)
