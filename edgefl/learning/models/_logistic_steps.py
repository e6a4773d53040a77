"""The gradients of logistic regression, written out."""

from itertools import chain

import torch
from torch import Tensor

from edgefl.learning.models import ChunkOfDevices, Outputs


class LogisticSteps:
    """The gradients of a chunk by hand: delta = weight (softmax - onehot) by logits, then the chain rule.

    Logits lie as [k, classes, B]: with weights kept [classes, inputs] both products run in BLAS's fast
    orientation, and the softmax over a strided axis vectorises over the batch. Inputs stay raw: their
    scaling (x - mean) s is linear too, so it is part of the products. Buffers and views are made once
    for all steps: beside two products of 0.3 ms each, the time of every further call to PyTorch would show.

    Both products leave out padding behind the last sample of all, where x ends; delta is 0 there.
    """

    def __init__(self, chunk: ChunkOfDevices) -> None:
        steps, count, batch = chunk.y.shape
        layout, rows, references = chunk.layout, chunk.rows, chunk.references
        mean, self._scale = chunk.scaling
        self._shift = -mean * self._scale
        self._push = chunk.push
        self._rows, self._batch = rows, batch
        self._count = self._most = count  # now, and at first: a tensor's len() takes as long as a call
        self._gradient = torch.empty_like(rows)
        self._weights, self._bias = layout.views(rows).values()
        self._by_weights, self._by_bias = layout.views(self._gradient).values()
        classes = self._bias.shape[1]
        # weight and -weight x onehot of each step
        each = chunk.weight.unsqueeze(2)
        cold = rows.new_zeros(steps, count, classes, batch).scatter_(2, chunk.y.unsqueeze(2), -each)
        self._weight, self._cold = each.unbind(), cold.unbind()
        self._x = self._flat = self._turned = rows.new_empty(0)

        # reference models lie behind the local one: one product of all is faster than one of each
        self._models = [len(models) for models in references]
        total = 1 + sum(self._models)
        self._all_weights, self._all_bias = self._weights, self._bias
        if total > 1:
            self._all_weights = rows.new_empty(count, total * classes, self._weights.shape[2])
            self._all_bias = rows.new_empty(count, total * classes)
            for place, reference in enumerate(chain.from_iterable(references), start=1):
                behind = slice(place * classes, (place + 1) * classes)
                self._all_weights[:, behind], self._all_bias[:, behind] = layout.views(reference).values()
        # zeros at first: what no product has written is weighted by 0, and has to be a number
        self._logits = rows.new_zeros(count, total * classes, batch)
        self._delta = rows.new_empty(count, classes, batch)

    def __call__(self, step: int, active: int, x: Tensor) -> Tensor:
        if active < self._count:
            self._keep(active)
        if x is not self._x:  # mostly the same buffer with new content
            self._x, self._flat = x, x.flatten(2)
            self._turned = self._flat.transpose(1, 2)
        weight, cold = self._weight[step], self._cold[step]
        if active < self._most:
            weight, cold = weight[:active], cold[:active]
        width = x.shape[1]
        logits = self._outputs(width)
        torch.softmax(logits[0], 1, out=self._delta)
        torch.addcmul(cold, self._delta, weight, out=self._delta)
        if self._push is not None:
            outputs, *others = (Outputs(z, z) for z in (part.transpose(1, 2) for part in logits))
            others_of = [[others.pop(0) for _ in range(count)] for count in self._models]
            for gradient in self._push(outputs, others_of, weight[:, 0]):
                self._delta.add_(gradient.transpose(1, 2))
        torch.sum(self._delta, 2, out=self._by_bias)
        # sum_b delta_b (x_b - mean) s: the mean's part is the bias's gradient, for every input
        torch.baddbmm(
            self._by_bias.unsqueeze(2),
            self._delta if width == self._batch else self._delta[:, :, :width],
            self._flat,
            beta=self._shift,
            alpha=self._scale,
            out=self._by_weights,
        )
        return self._gradient

    def _outputs(self, width: int) -> tuple[Tensor, ...]:
        """Compute the logits [k, classes, B] of the local models and of each reference, up to this width."""
        classes = self._bias.shape[1]
        if self._models:
            self._all_weights[:, :classes], self._all_bias[:, :classes] = self._weights, self._bias
        offset = self._all_bias
        if self._shift:
            offset = torch.add(offset, self._all_weights.sum(2), alpha=self._shift)
        torch.baddbmm(
            offset.unsqueeze(2),
            self._all_weights,
            self._turned,
            alpha=self._scale,
            out=self._logits if width == self._batch else self._logits[:, :, :width],
        )
        return self._logits.split(classes, 1) if self._models else (self._logits,)

    def _keep(self, active: int) -> None:
        """Keep only the first devices, which go on.

        All buffers and views are cut once here, when a device drops out: the steps between, each of which is
        only two short products, then use them without a further slice.
        """
        self._count = active
        for name in (
            *("rows", "gradient", "weights", "bias", "by_weights", "by_bias", "all_weights", "all_bias"),
            *("logits", "delta"),
        ):
            setattr(self, f"_{name}", getattr(self, f"_{name}")[:active])
