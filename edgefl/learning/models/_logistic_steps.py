"""Hand-written gradients of logistic regression."""

from itertools import chain

import torch
from torch import Tensor

from edgefl.learning.models import ChunkOfDevices, Outputs, Read, ReadSome

# Bytes of inputs read at a time on a CPU. Two successive products read the inputs, so most of a block should fit in
# the second-level cache (1 to 2 MB): five devices with 128 images of 28x28. Extra terms of the loss add work, so that
# blocks twice as large (ten devices) pay off.
CPU_BLOCK_BYTES, CPU_BLOCK_BYTES_WITH_TERMS = 2_100_000, 4_100_000
TESTED_BYTES = 1_600_000  # bytes of inputs read at a time in tests, in which one product uses the inputs


class LogisticSteps:
    """Compute a chunk's gradients by formulas: delta = weight (softmax - onehot) at the logits, then the chain rule.

    Devices are processed in blocks, so that inputs stay in the cache from the first product to the second.

    Logits are stored as [k, classes, B]: with weights as [classes, inputs] both products run in BLAS's fast
    orientation, and the softmax over a strided axis vectorises over the batch. Inputs stay raw: their scaling (x -
    mean) s is linear, so the products include it.
    """

    def __init__(self, chunk: ChunkOfDevices) -> None:
        steps, count, batch = chunk.y.shape
        layout, rows, references = chunk.layout, chunk.rows, chunk.references
        mean, self.scale = chunk.scaling
        self.shift = -mean * self.scale
        self.push = chunk.push
        self.gradient = torch.empty_like(rows)
        self.weights, self.bias = layout.views(rows).values()
        self.by_weights, self.by_bias = layout.views(self.gradient).values()
        classes = self.bias.shape[1]
        # for each step, the samples' weights, and -weight times the one-hot labels
        self.weight = chunk.weight.unsqueeze(2)
        self.cold = rows.new_zeros(steps, count, classes, batch)
        self.cold.scatter_(2, chunk.y.unsqueeze(2), -self.weight)

        # weights of the local model and the reference models, since one product for all is faster than several
        self.models = [len(models) for models in references]
        total = 1 + sum(self.models)
        self.all_weights, self.all_bias = self.weights, self.bias
        if total > 1:
            self.all_weights = rows.new_empty(count, total * classes, self.weights.shape[2])
            self.all_bias = rows.new_empty(count, total * classes)
            for place, reference in enumerate(chain.from_iterable(references), start=1):
                behind = slice(place * classes, (place + 1) * classes)
                self.all_weights[:, behind], self.all_bias[:, behind] = layout.views(reference).values()
        self.offset = torch.empty_like(self.all_bias) if self.shift else self.all_bias
        # zeros, because entries that no product writes are later multiplied by 0, which would keep a NaN
        self.logits = rows.new_zeros(count, total * classes, batch)
        self.delta = rows.new_empty(count, classes, batch)

        self._at_once = count
        if rows.device.type == "cpu":
            fits = CPU_BLOCK_BYTES if self.push is None else CPU_BLOCK_BYTES_WITH_TERMS
            self._at_once = max(1, fits // (4 * batch * self.weights.shape[2]))
        self._active, self._blocks = 0, list[_Block]()
        self._keep(count)

    def __call__(self, step: int, active: int, read: Read) -> Tensor:
        if active < self._active:
            self._keep(active)
        self._copy()
        for block in self._blocks:
            block(step, read)
        return self.gradient

    def _copy(self) -> None:
        """Copy the local models in front of the reference models, and add the shift of the inputs to the offset."""
        classes = self.bias.shape[1]
        if self.models:
            self.all_weights[:, :classes], self.all_bias[:, :classes] = self.weights, self.bias
        if self.shift:
            torch.add(self.all_bias, self.all_weights.sum(2), alpha=self.shift, out=self.offset)

    def _keep(self, active: int) -> None:
        """Limit buffers and blocks to the first `active` devices, which continue."""
        self._active = active
        for name in ("gradient", "weights", "bias", "all_weights", "all_bias", "offset"):
            setattr(self, name, getattr(self, name)[:active])
        whole = active // self._at_once if self._blocks else 0
        self._blocks = self._blocks[:whole]
        for begin in range(whole * self._at_once, active, self._at_once):
            self._blocks.append(_Block(self, begin, min(begin + self._at_once, active)))


class _Block:
    """A block of a chunk's devices, reused in every step.

    Buffers and views are made once for all steps: two products take 0.03 ms per device, so every additional call to
    PyTorch would be noticeable. Both products omit the padding after the last sample of the block's
    devices: x ends there, and delta is 0 in padding.
    """

    def __init__(self, chunk: LogisticSteps, begin: int, end: int) -> None:
        self._begin, self._end, own = begin, end, slice(begin, end)
        self._shift, self._scale, self._push, self._models = (
            chunk.shift,
            chunk.scale,
            chunk.push,
            chunk.models,
        )
        self._classes, self._batch = chunk.delta.shape[1:]
        self._weights = chunk.all_weights[own]
        self._by_weights, self._by_bias = chunk.by_weights[own], chunk.by_bias[own]
        self._logits, self._delta = chunk.logits[own], chunk.delta[own]
        self._offset, self._by_offset = chunk.offset[own].unsqueeze(2), self._by_bias.unsqueeze(2)
        self._parts = self._logits.split(self._classes, 1)  # logits of local and reference models
        self._weight, self._cold = chunk.weight[:, own].unbind(), chunk.cold[:, own].unbind()
        self._x = self._flat = self._turned = self._logits

    def __call__(self, step: int, read: Read) -> None:
        x = read(step, self._begin, self._end)
        if x is not self._x:  # usually x is the same buffer, and the views remain valid
            self._x, self._flat = x, x.flatten(2)
            self._turned = self._flat.transpose(1, 2)
        width, weight, delta = x.shape[1], self._weight[step], self._delta
        whole = width == self._batch
        # compute the logits of the local models and of each reference model
        torch.baddbmm(
            self._offset,
            self._weights,
            self._turned,
            alpha=self._scale,
            out=self._logits if whole else self._logits[:, :, :width],
        )
        torch.softmax(self._parts[0], 1, out=delta)
        torch.addcmul(self._cold[step], delta, weight, out=delta)
        if self._push is not None:
            self._add_pushed(weight[:, 0])
        torch.sum(delta, 2, out=self._by_bias)
        # sum_b delta_b (x_b - mean) s: the mean's part is -mean s times the bias's gradient, for every input
        torch.baddbmm(
            self._by_offset,
            delta if whole else delta[:, :, :width],
            self._flat,
            beta=self._shift,
            alpha=self._scale,
            out=self._by_weights,
        )

    def _add_pushed(self, weight: Tensor) -> None:
        """Add the gradients of the loss's extra terms to delta, the gradients at the logits."""
        assert self._push is not None
        outputs, *others = (Outputs(z, z) for z in (part.transpose(1, 2) for part in self._parts))
        others_of = [[others.pop(0) for _ in range(count)] for count in self._models]
        for gradient in self._push(outputs, others_of, weight):
            self._delta.add_(gradient.transpose(1, 2))


def logits_of(
    weights: Tensor,
    bias: Tensor,
    count: int,
    read: ReadSome,
    scaling: tuple[float, float],
) -> Tensor:
    """Compute the logits [B, C] of `count` samples, in blocks and stored as [C, B], as in `LogisticSteps`."""
    mean, scale = scaling
    offset = torch.add(bias, weights.sum(1), alpha=-mean * scale)
    result = weights.new_empty(len(bias), count)
    at_once = max(1, TESTED_BYTES // (4 * weights.shape[1])) if weights.device.type == "cpu" else count
    at_once = -(-count // -(-count // at_once))  # so that blocks have nearly equal sizes
    for begin in range(0, count, at_once):
        end = min(begin + at_once, count)
        x, out = read(begin, end).flatten(1), result[:, begin:end]
        torch.addmm(offset.unsqueeze(1), weights, x.t(), alpha=scale, out=out)
    return result.t()
