"""Check the input shapes of modules, and join features and head."""

from collections import OrderedDict

from torch import nn

from edgefl.errors import EdgeflError


def image_shape(input_shape: tuple[int, ...], least: int) -> tuple[int, int, int]:
    """Return (channels, height, width) of images that are [height, width] or [channels, height, width].

    Args:
        input_shape: shape of one sample.
        least: smallest height and width, in pixels, that the model accepts.

    Raises:
        EdgeflError: the samples are not images, or the images are too small.
    """
    if len(input_shape) not in (2, 3):
        raise _misfit("images, [height, width] or [channels, height, width]", input_shape)
    channels, height, width = (1, *input_shape) if len(input_shape) == 2 else input_shape
    if min(height, width) < least:
        raise _misfit(f"images of at least {least}x{least} pixels", input_shape)
    return channels, height, width


def grey_to_channel(input_shape: tuple[int, ...]) -> list[nn.Module]:
    """Return [a layer that adds a channel] for grey images [height, width], or [] for images with channels."""
    return [nn.Unflatten(1, (1, input_shape[0]))] if len(input_shape) == 2 else []


def require_tokens(input_shape: tuple[int, ...]) -> None:
    """Check that samples are sequences of tokens.

    Raises:
        EdgeflError: a sample does not have exactly one dimension.
    """
    if len(input_shape) != 1:
        raise _misfit("texts, [tokens]", input_shape)


def with_head(features: nn.Module, head: nn.Linear, dropout: float = 0.0) -> nn.Sequential:
    """Join the layers `features` and `head` into a module with a representation.

    `module.features(x)` [batch, width] is the representation, `module.head` the layer from it to the logits; a
    dropout between them is active in training only.
    """
    parts = [("features", features), *([("dropout", nn.Dropout(dropout))] if dropout else []), ("head", head)]
    return nn.Sequential(OrderedDict(parts))


def _misfit(wanted: str, input_shape: tuple[int, ...]) -> EdgeflError:
    return EdgeflError(
        f"this model takes {wanted}; a sample of the data set has shape {list(input_shape)}: choose another model or"
        " data set",
        ("learning", "model"),
    )
