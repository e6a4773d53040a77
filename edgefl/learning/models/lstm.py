"""The two-layer LSTM for next characters."""

from typing import ClassVar

import torch
from pydantic import Field
from torch import Tensor, nn

from edgefl.learning.models import Model
from edgefl.learning.models._shape import require_tokens, with_head


class Lstm(Model):
    """Embedding of 8, two LSTM layers of 256, and a linear layer on the last output.

    820,522 parameters for 90 symbols and classes: FLASH's model for Shakespeare, taken from Reddi et al.,
    Adaptive Federated Optimization, ICLR 2021, appendix C.3, Table 5. Samples are token numbers of a text's
    last characters; the class is the character that follows. Representation: the last output.

    Two things are left out: the source predicts a character at every position of the sequence and not only
    after the last one; and padding is a symbol like any other, with an embedding that is learned.
    """

    typical_input: ClassVar = (80,)
    typical_classes: ClassVar = 90

    vocabulary: int = Field(90, ge=2, description="number of embeddings; tokens are smaller")
    embedding: int = Field(8, ge=1, description="length of an embedding")
    hidden: int = Field(256, ge=1, description="units of each LSTM layer")

    def build(self, input_shape: tuple[int, ...], classes: int) -> nn.Module:
        require_tokens(input_shape)
        features = nn.Sequential(
            _Embedding(self.vocabulary, self.embedding),
            _LstmLayer(self.embedding, self.hidden),
            _LstmLayer(self.hidden, self.hidden),
            _Last(),
        )
        return with_head(features, nn.Linear(self.hidden, classes))


class _Embedding(nn.Embedding):
    """Tokens [batch, length] of any number type (floats hold them exactly) to [batch, length, width]."""

    def forward(self, tokens: Tensor) -> Tensor:
        return super().forward(tokens.long())


class _LstmLayer(nn.Module):
    """[batch, length, inputs] to [batch, length, hidden], from a state of zeros.

    Written out in matrix products: nn.LSTM has a second, redundant bias (1,024 parameters more per layer of
    256), runs one by one under vmap, and hides its FLOPs from PyTorch's counter. Initial weights are uniform
    within +-1/sqrt(hidden) as in nn.LSTM, with 1 added to the bias of the forget gate as in Keras.
    """

    def __init__(self, inputs: int, hidden: int) -> None:
        super().__init__()
        bound = hidden**-0.5
        self.from_input = nn.Parameter(torch.empty(4 * hidden, inputs).uniform_(-bound, bound))
        self.from_output = nn.Parameter(torch.empty(4 * hidden, hidden).uniform_(-bound, bound))
        self.bias = nn.Parameter(torch.empty(4 * hidden).uniform_(-bound, bound))
        with torch.no_grad():
            self.bias[hidden : 2 * hidden] += 1.0

    def forward(self, x: Tensor) -> Tensor:
        driven = nn.functional.linear(x, self.from_input, self.bias)
        output = cell = x.new_zeros(len(x), self.from_output.shape[1])
        outputs = []
        for step in range(x.shape[1]):
            gates = driven[:, step] + output @ self.from_output.T
            enter, keep, candidate, leave = gates.chunk(4, dim=1)
            cell = keep.sigmoid() * cell + enter.sigmoid() * candidate.tanh()
            output = leave.sigmoid() * cell.tanh()
            outputs.append(output)
        return torch.stack(outputs, dim=1)


class _Last(nn.Module):
    """[batch, length, hidden] to the output after the last character, [batch, hidden]."""

    def forward(self, x: Tensor) -> Tensor:
        return x[:, -1]
