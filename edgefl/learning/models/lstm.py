"""The two-layer LSTM that predicts the next character."""

from typing import ClassVar, Literal

import torch
from pydantic import Field
from torch import Tensor, nn

from edgefl.learning.models import Model
from edgefl.learning.models._shape import require_tokens, with_head
from edgefl.learning.modules.layers import Recurrent

LAYERS = 2


class Lstm(Model):
    """Embedding of width 8, two LSTM layers of width 256, and a linear layer on the last output or on each output.

    820,522 parameters for 90 symbols and classes: FLASH's model for Shakespeare, taken from Reddi et al., Adaptive
    Federated Optimization, ICLR 2021, appendix C. Samples are token ids of a text's last characters; the class is
    the character that follows. Representation: the last output.

    The source predicts a character at every position of the sequence, as `targets: every` does for the task
    `every_token`. Left out: special treatment of padding, which is a symbol like any other, with a learned embedding.
    """

    typical_input: ClassVar = (80,)
    typical_classes: ClassVar = 90

    vocabulary: int = Field(
        90, ge=2, le=10_000_000, description="number of embeddings; token ids must be below this number"
    )
    embedding: ClassVar[int] = 8  # length of an embedding
    hidden: int = Field(256, ge=1, le=100_000, description="width of each LSTM layer")
    targets: Literal["last", "every"] = Field(
        "last", description="positions at which a token is predicted. last: only the last; every: all"
    )

    def build(self, input_shape: tuple[int, ...], classes: int) -> nn.Module:
        require_tokens(input_shape)
        features = nn.Sequential(
            _Embedding(self.vocabulary, self.embedding),
            _LstmLayers(self.embedding, self.hidden, every=self.targets == "every"),
        )
        return with_head(features, nn.Linear(self.hidden, classes))


class _Embedding(nn.Embedding):
    """An embedding [..., width] of tokens [batch, length], which may have any number type, floats included."""

    def forward(self, tokens: Tensor) -> Tensor:
        return super().forward(tokens.long())


class _LstmLayers(Recurrent):
    """LSTM layers that map [batch, length, inputs] to the last layer's output after the last step, [batch, hidden].

    With `every`, they return the output after each step, [batch, length, hidden].

    The layers use PyTorch's fused LSTM without nn.LSTM's second, redundant bias (1,024 parameters per layer of 256).
    Initial weights are uniform within +-1/sqrt(hidden) as in nn.LSTM, with 1 added to the bias of the forget gate as
    in Keras. The initial state is 0.
    """

    def __init__(self, inputs: int, hidden: int, *, every: bool = False) -> None:
        super().__init__()
        self.hidden, self.every = hidden, every
        self.weights = nn.ParameterList()
        bound = hidden**-0.5
        for width in (inputs, *[hidden] * (LAYERS - 1)):
            bias = torch.empty(4 * hidden).uniform_(-bound, bound)
            bias[hidden : 2 * hidden] += 1.0  # gates are in the order input, forget, cell, output
            for initial in (
                torch.empty(4 * hidden, width).uniform_(-bound, bound),
                torch.empty(4 * hidden, hidden).uniform_(-bound, bound),
                bias,
            ):
                self.weights.append(nn.Parameter(initial))

    def forward(self, x: Tensor) -> Tensor:
        state = x.new_zeros(LAYERS, len(x), self.hidden)
        no_bias = x.new_zeros(4 * self.hidden)
        weights: list[Tensor] = []
        for first in range(0, len(self.weights), 3):
            # no slice, since a slice of a ParameterList has new parameters, which stacked training cannot update
            weights += [self.weights[first + i] for i in range(3)] + [no_bias]
        # train=True makes cuDNN keep what the backward pass needs, and changes nothing else without dropout
        outputs, _, _ = torch.lstm(x, (state, state), weights, True, LAYERS, 0.0, True, False, True)
        return outputs if self.every else outputs[:, -1]
