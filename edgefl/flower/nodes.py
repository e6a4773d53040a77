"""Simulate devices as Flower nodes, which run the ClientApp in this process and keep their contexts."""

import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from flwr.app import Context, Error, Message, RecordDict
from flwr.clientapp import ClientApp
from flwr.serverapp import Grid
from flwr.supercore.task_identity import TaskIdentity

from edgefl.errors import EdgeflError
from edgefl.rng import Streams

FIRST_NODE = 1  # node of device 0; Flower uses 0 for no node
UNAVAILABLE = 5  # flwr.common.constant.ErrorCode.NODE_UNAVAILABLE
# largest number of lookups: Flower's sampling looks up the connected nodes every second while there are too few
MOST_ASKED = 4
TOO_FEW = (
    "the strategy waits for more than the {many} nodes of this round, but no more will connect: the scenario sets how"
    " many take part (rounds.selector) and how many updates a round needs (rounds.min_updates); set the"
    " strategy's minimum to one (min_train_nodes, min_evaluate_nodes, min_available_nodes; for flwr.server"
    " min_fit_clients, min_evaluate_clients, min_available_clients)"
)


def node_of(device: int) -> int:
    """Return the id of the Flower node that represents a device."""
    return device + FIRST_NODE


def device_of(node: int) -> int:
    """Return the device that a Flower node represents."""
    return node - FIRST_NODE


class Nodes(Grid):  # type: ignore[misc]  # Flower is not installed where types are checked
    """The currently connected devices as the Flower nodes that a strategy sees.

    Args:
        app: the ClientApp that each device runs.
        devices: number of devices in the run.
        streams: the run's random streams by name.
    """

    def __init__(self, app: ClientApp, devices: Sequence[int], streams: Streams) -> None:
        self._app = app
        self._streams = streams
        self._devices = devices
        self._contexts: dict[int, Context] = {}
        self._asked = 0
        self._replies: dict[str, Message] = {}
        self._name: tuple[str | int, ...] = ()  # name of the random stream of the current request
        self.connected: tuple[int, ...] = ()  # ids of the connected devices

    @contextmanager
    def of(self, devices: Sequence[int], *name: str | int) -> Iterator[None]:
        """Connect the given devices for a `with` block, and seed the global random generators from a name."""
        before, self.connected, self._asked = (self.connected, self._name), tuple(devices), 0
        self._name = name
        try:
            with _identity(), _drawing(self._streams.key("strategy", *name)):
                yield
        finally:
            self.connected, self._name = before

    def answers(self, messages: Iterable[Message]) -> dict[int, Message]:
        """Run the ClientApp for each message; return device -> reply, in order of ids.

        Raises:
            EdgeflError: the ClientApp fails, or does not return a reply.
        """
        sent = {device_of(message.metadata.dst_node_id): message for message in messages}
        return {device: self._answer(device, sent[device]) for device in sorted(sent)}

    def state(self) -> dict[int, RecordDict]:
        """Return the state in each device's Flower context."""
        return {device: context.state for device, context in self._contexts.items()}

    def restore(self, states: Mapping[int, RecordDict]) -> None:
        """Restore the state in each device's Flower context."""
        for device, state in states.items():
            self._context(device).state = state

    def _answer(self, device: int, message: Message) -> Message:
        with _drawing(self._streams.key("node", device, *self._name)):
            try:
                reply = self._app(message, self._context(device))
            except EdgeflError:
                raise
            except (Exception, SystemExit) as error:
                raise EdgeflError(
                    f"{self._where(device)} raised {type(error).__name__}: {error}; fix it, see the traceback above"
                ) from error
        if not isinstance(reply, Message):
            raise EdgeflError(
                f"{self._where(device)} returned {type(reply).__name__}: return one flwr.app.Message"
            )
        if reply.has_error():
            raise EdgeflError(
                f"{self._where(device)} replied with an error ({reply.error.reason}): failures are modelled by the"
                " scenario, so make the ClientApp reply with content"
            )
        if not reply.has_content() or reply.metadata.reply_to_message_id != message.metadata.message_id:
            raise EdgeflError(
                f"{self._where(device)} replied to another message: return Message(content, reply_to=message)"
            )
        return reply

    def _where(self, device: int) -> str:
        return f"the ClientApp of device {device}, {' '.join(map(str, self._name))},"

    def _context(self, device: int) -> Context:
        if device not in self._contexts:
            self._contexts[device] = Context(
                run_id=1,
                node_id=node_of(device),
                node_config={
                    "partition-id": device,
                    "num-partitions": len(self._devices),
                    "seed": self._streams.key("node", device) % 2**31,
                },
                state=RecordDict(),
                run_config={},
            )
        return self._contexts[device]

    # ---- methods of Flower's Grid

    def set_run(self, run: Any) -> None:
        """Do nothing: edgefl has a single Flower run."""

    @property
    def run(self) -> Any:
        raise EdgeflError("inside edgefl there is no Flower run to look up")

    def create_message(
        self,
        content: RecordDict,
        message_type: str,
        dst_node_id: int,
        group_id: str,
        ttl: float | None = None,
    ) -> Message:
        return Message(content, dst_node_id, message_type, ttl=ttl, group_id=group_id)

    def get_node_ids(self) -> Iterable[int]:
        self._asked += 1
        if self._asked > MOST_ASKED:
            raise EdgeflError(TOO_FEW.format(many=len(self.connected)))
        return [node_of(device) for device in self.connected]

    def push_messages(self, messages: Iterable[Message]) -> Iterable[str]:
        replies = {f"{number}": reply for number, reply in self.answers(messages).items()}
        self._replies |= replies
        return list(replies)

    def pull_messages(self, message_ids: Iterable[str]) -> Iterable[Message]:
        return [self._replies.pop(id_) for id_ in message_ids if id_ in self._replies]

    def send_and_receive(
        self, messages: Iterable[Message], *, timeout: float | None = None
    ) -> Iterable[Message]:
        return list(self.answers(messages).values())


def lost(message: Message) -> Message:
    """Return the error reply that a strategy receives for an update that did not arrive."""
    return Message(Error(UNAVAILABLE, "its update did not arrive"), reply_to=message)


def bits_of(content: RecordDict) -> int:
    """Return the size of a message's arrays, metrics and configuration in bits."""
    return 8 * sum(record.count_bytes() for record in content.values())


@contextmanager
def _identity() -> Iterator[None]:
    """Assume the identity of Flower's server task for a `with` block, since only a task can create messages."""
    names = ("_task_id", "_run_id", "_node_id")
    before = [getattr(TaskIdentity, name) for name in names]
    for name in names:
        setattr(TaskIdentity, name, 1)
    try:
        yield
    finally:
        for name, value in zip(names, before, strict=True):
            setattr(TaskIdentity, name, value)


@contextmanager
def _drawing(key: int) -> Iterator[None]:
    """Seed the global generators of Python, NumPy and PyTorch from a key for a `with` block, then restore them."""
    python, numpy, tensors = random.getstate(), np.random.get_state(), torch.get_rng_state()  # noqa: NPY002
    random.seed(key)
    np.random.seed(key % 2**32)  # noqa: NPY002
    torch.default_generator.manual_seed(key % 2**63)
    try:
        yield
    finally:
        random.setstate(python)
        np.random.set_state(numpy)  # noqa: NPY002
        torch.set_rng_state(tensors)
