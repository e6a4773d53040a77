"""Record the names of PyTorch's operations, in order."""

from typing import Any

from torch.utils._python_dispatch import TorchDispatchMode


class Operations(TorchDispatchMode):
    """A context manager that records the names of operations in `names`."""

    def __init__(self) -> None:
        super().__init__()
        self.names: list[str] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.names.append(func.overloadpacket.__name__)
        return func(*args, **(kwargs or {}))
