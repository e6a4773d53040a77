"""Call `edgefl` in this process; a new process would take seconds to load PyTorch."""

import pytest

from edgefl.commands.cli import main


def code_of(*words: object) -> int:
    """Return a command's exit code."""
    with pytest.raises(SystemExit) as ended:
        main([str(word) for word in words])
    return int(ended.value.code or 0)
