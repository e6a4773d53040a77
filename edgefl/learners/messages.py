"""Messages, each with a kind and a content, between the two processes of a run."""

import pickle
import socket
import struct
import traceback
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from edgefl.contract import Now, StageFacts
from edgefl.errors import EdgeflError
from edgefl.run_directory.interruption import Interrupted
from edgefl.run_directory.questions import Place

_LENGTH = struct.Struct("!Q")


@dataclass(frozen=True)
class Question:
    """A call to one of a run's learners, with everything that determines the answer."""

    learner: int
    at: Place
    facts: StageFacts | None
    call: str
    asked: Mapping[str, Any]
    now: Now


def packed(kind: str, content: Any) -> bytes:
    """Pickle a message, preceded by its length in bytes."""
    message = pickle.dumps((kind, content), protocol=5)
    return _LENGTH.pack(len(message)) + message


def read(pipe: socket.socket) -> Any:
    """Read one message from a socket.

    Raises:
        EOFError: the other end of the socket is closed.
    """
    (length,) = _LENGTH.unpack(_exactly(pipe, _LENGTH.size))
    return pickle.loads(_exactly(pipe, length))


def _exactly(pipe: socket.socket, length: int) -> bytearray:
    message = bytearray(length)
    left = memoryview(message)
    while left:
        some = pipe.recv_into(left)
        if not some:
            raise EOFError
        left = left[some:]
    return message


def carried(error: BaseException) -> BaseException:
    """Return an error that another process can raise, with a traceback unless the user caused the error."""
    if not isinstance(error, EdgeflError | Interrupted):
        error.add_note(f"in the training process:\n{''.join(traceback.format_exception(error))}")
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:
        return RuntimeError("".join(traceback.format_exception(error)))
    return error
