"""Models from other libraries, built by a function that the scenario names."""

from __future__ import annotations

from inspect import signature
from typing import TYPE_CHECKING, Any, ClassVar

from pydantic import Field, field_validator

from edgefl.config import outside
from edgefl.errors import EdgeflError, clipped
from edgefl.learning.models import Model

if TYPE_CHECKING:
    from torch import nn

CHANNELS = frozenset({"in_chans", "in_channels"})  # names of the argument in timm and in torch.nn


class Factory(Model):
    """A module returned by a function or class that you name, from timm, torchvision or your own file.

    `{name: factory, function: "timm:create_model", arguments: {model_name: resnet18, in_chans: 1}}`. `num_classes` is
    passed too, if the function takes it. If `arguments` include `in_chans` or `in_channels`, grey images
    [height, width] get a channel. The function is third-party code, so the scenario needs --allow-code.
    """

    typical_input: ClassVar = (3, 32, 32)
    typical_classes: ClassVar = 10

    function: str = Field(pattern=r"^[\w.]+:\w+$", description="function that makes the model, module:name")
    arguments: dict[str, Any] = Field(
        {}, description="keyword arguments of the function, in addition to num_classes"
    )

    @field_validator("function")
    @classmethod
    def _there(cls, function: str) -> str:
        outside.load_function(function)
        return function

    def build(self, input_shape: tuple[int, ...], classes: int) -> nn.Module:
        from torch import nn

        given, function = {**self.arguments, "num_classes": classes}, outside.load_function(self.function)
        why = outside.misfit(function, **given)
        if why and not outside.misfit(
            function, **self.arguments
        ):  # such as a module of a fixed number of outputs
            given, why = self.arguments, ""
        if why:
            raise EdgeflError(
                f"{self.function} takes {clipped(str(signature(function)), 200)}, but gets {', '.join(given)} ({why})"
                ": name the function's own arguments in learning.model.arguments; num_classes is passed if taken",
                ("learning", "model"),
            )
        try:
            module = function(**given)
        except Exception as error:  # a third-party function may raise anything
            shown = ", ".join(f"{name}={value!r}" for name, value in given.items())
            raise EdgeflError(
                f"{self.function}({clipped(shown, 200)}) fails: {type(error).__name__}: {clipped(str(error), 200)};"
                " correct learning.model.arguments, or the function",
                ("learning", "model"),
            ) from error
        if not isinstance(module, nn.Module):
            raise EdgeflError(
                f"{self.function} returns a {type(module).__name__}, not an nn.Module", ("learning", "model")
            )
        if CHANNELS & self.arguments.keys() and len(input_shape) == 2:
            module.register_forward_pre_hook(_with_channel)  # an extra layer would rename the parameters
        return module


def _with_channel(_: nn.Module, given: tuple[Any, ...]) -> tuple[Any, ...]:
    """Add a channel to grey images [batch, height, width] before the module's first layer."""
    return given[0].unsqueeze(1), *given[1:]
