"""Run SGD of fully connected networks, compiled by numba; a device's model stays in the cache during a round.

Matrices are stored in panels, as in `numba_tiles`: inputs and activations [samples, numbers], weights of hidden
layers [inputs, outputs] and weights of the last layer [outputs, inputs], so that all products run along lanes.
Columns that fill the last panel are zeros, and stay zeros. Rows are padded for tiles of five, and to an odd number,
because panels with a stride of a power of two would share few lines of the cache.
"""

import numpy as np
from numba import float32, njit

from edgefl.learning.local.numba_tiles import LANES, copy, descent, dots, power_of_two, prefetch, product

_five, _five_steps, _four_steps, _five_dots = product(5), descent(5), descent(4), dots(5, 2)
BYTES = 4  # bytes of a float32 value
ROW = BYTES * LANES  # bytes of a panel's row
AT_ONCE = 16  # panels multiplied at a time, few enough that weights stay in the first-level cache
AHEAD, CACHE_LINE = 3, 64  # number of samples that are fetched ahead; bytes per fetch

# Numba's cache notices changes to this file only: after editing `numba_tiles`, delete this file's cache entries.
compiled = njit(nogil=True, cache=True, error_model="numpy")


@compiled
def _panels(columns):
    """Return the number of panels that hold `columns` columns, 16 per panel."""
    return (columns + LANES - 1) // LANES


@compiled
def _rows_of(count):
    """Return the number of rows, with padding, of a panel that holds `count` rows."""
    return (count + 9) // 10 * 10 + 1


@compiled
def _exp(x):
    """Return e^x for x <= 0 by Cephes's method, within one unit in the last place; 0 below -87, NaN for NaN."""
    x = float32(-87.0) if x < float32(-87.0) else x
    shifted = x * float32(1.44269504) + float32(12582912.0)
    n = shifted - float32(12582912.0)
    x = (x - n * float32(0.693359375)) + n * float32(2.12194440e-4)
    y = float32(1.9875691500e-4)
    y = y * x + float32(1.3981999507e-3)
    y = y * x + float32(8.3334519073e-3)
    y = y * x + float32(4.1665795894e-2)
    y = y * x + float32(1.6666665459e-1)
    y = y * x + float32(5.0000001201e-1)
    return (y * x * x + x + float32(1.0)) * power_of_two(shifted)


@compiled
def _gather(x, samples, mean, scale, line, into, distance):
    """Write normalised samples [B] of x [n, D] into panels with a stride of `distance`; `line` buffers a sample."""
    for b in range(len(samples)):
        if b + AHEAD < len(samples):
            later = x.ctypes.data + samples[b + AHEAD] % len(x) * x.strides[0]
            for begin in range(0, x.strides[0], CACHE_LINE):
                prefetch(later + begin)
        sample = x[samples[b] % len(x)]
        for i in range(len(sample)):
            line[i] = (float32(sample[i]) - mean[i]) * scale[i]
        for panel in range(_panels(len(sample))):
            copy(line.ctypes.data + panel * ROW, into.ctypes.data + BYTES * (panel * distance + b * LANES))


@compiled
def _errors(z, width, bias, y, weight):
    """Replace logits [B, C] without bias by the gradients of the weighted cross-entropy at logits + bias [C]."""
    classes = len(bias)
    for b in range(len(y)):
        row = z[b * width : b * width + classes]
        most = row[0] + bias[0]
        for c in range(classes):
            row[c] += bias[c]
            most = row[c] if row[c] > most else most
        total = float32(0.0)
        for c in range(classes):
            row[c] = _exp(row[c] - most)
        for c in range(classes):
            total += row[c]
        share = weight[b] / total
        for c in range(classes):
            row[c] *= share
        row[y[b]] -= weight[b]


@compiled
def _carry(row, dims, table, work, back):
    """Copy a model [M] into the panels of `work`, which are 0 outside the model's weights, or copy it back."""
    place, last = 0, len(dims) - 2
    for layer in range(last + 1):
        inputs, outputs, at = dims[layer], dims[layer + 1], table[layer]
        weights = row[place : place + inputs * outputs].reshape(outputs, inputs)
        distance = LANES * _rows_of(outputs if layer == last else inputs)
        for o in range(outputs):
            for i in range(inputs):
                if layer == last:
                    cell = at[0] + i // LANES * distance + o * LANES + i % LANES
                else:
                    cell = at[0] + o // LANES * distance + o % LANES + i * LANES
                if back:
                    weights[o, i] = work[cell]
                else:
                    work[cell] = weights[o, i]
        place += inputs * outputs
        if back:
            row[place : place + outputs] = work[at[1] : at[1] + outputs]
        else:
            work[at[1] : at[1] + outputs] = row[place : place + outputs]
        place += outputs


@compiled
def _forward(size, distance, dims, table, model, work):
    """Compute the activations of all layers for a batch; the last layer's activations lack the bias."""
    base, last = work.ctypes.data, len(dims) - 2
    for layer in range(last):
        weights, bias, a, _, c = table[layer]
        rows = ROW * _rows_of(dims[layer])
        for panel in range(_panels(dims[layer + 1])):
            into = base + BYTES * (c + panel * distance)
            for i in range(size):
                copy(base + BYTES * (model + bias) + panel * ROW, into + i * ROW)
            for begin in range(0, _panels(dims[layer]), AT_ONCE):
                w = base + BYTES * (model + weights) + panel * rows + begin * LANES * ROW
                some = min(AT_ONCE, _panels(dims[layer]) - begin)
                for i in range(0, size, 5):
                    left = base + BYTES * (a + begin * distance) + i * ROW
                    _five(left, LANES, 1, distance, some, LANES, w, into + i * ROW)
            hidden = work[c + panel * distance : c + panel * distance + size * LANES]
            for i in range(len(hidden)):
                hidden[i] = float32(0.0) if hidden[i] <= float32(0.0) else hidden[i]
    weights, _, a, c, _ = table[last]
    rows, width = LANES * _rows_of(dims[last + 1]), LANES * _panels(dims[last + 1])
    for i in range(0, size, 5):
        for j in range(0, dims[last + 1], 2):
            w, into = base + BYTES * (model + weights) + j * ROW, base + BYTES * (c + i * width + j)
            _five_dots(base + BYTES * a + i * ROW, distance, w, rows, _panels(dims[last]), into, width)


@compiled
def _behind(layer, size, distance, dims, table, model, work):
    """Compute the gradients for a hidden layer's activations from the gradients for the next layer's outputs."""
    base, last = work.ctypes.data, len(dims) - 2
    weights, _, a, errors, _ = table[layer]
    into = table[layer - 1, 3]
    rows = _rows_of(dims[layer + 1] if layer == last else dims[layer])
    for panel in range(_panels(dims[layer])):
        there = into + panel * distance
        if layer == last:
            work[there : there + size * LANES] = float32(0.0)
        for i in range(0, size, 5):
            c = base + BYTES * there + i * ROW
            if layer == last:
                width = LANES * _panels(dims[layer + 1])
                left = base + BYTES * (errors + i * width)
                w = base + BYTES * (model + weights) + panel * rows * ROW
                _five(left, width, 1, 0, 1, dims[layer + 1], w, c)
                continue
            for j in range(0, LANES, 2):
                w = base + BYTES * (model + weights) + (panel * LANES + j) * ROW
                left = base + BYTES * errors + i * ROW
                _five_dots(left, distance, w, LANES * rows, _panels(dims[layer + 1]), c + BYTES * j, LANES)
        hidden = work[a + panel * distance : a + panel * distance + size * LANES]
        behind = work[there : there + size * LANES]
        for i in range(len(hidden)):
            behind[i] = behind[i] if hidden[i] > float32(0.0) else float32(0.0)


@compiled
def _descend(layer, size, distance, dims, table, model, velocity, work, momentum, decay, lr):
    """Update a layer's weights and biases by a step of SGD with momentum."""
    base, last = work.ctypes.data, len(dims) - 2
    weights, bias, a, errors, _ = table[layer]
    inputs, outputs = dims[layer], dims[layer + 1]
    u, w = base + BYTES * (velocity + weights), base + BYTES * (model + weights)
    if layer == last:
        width = LANES * _panels(outputs)
        for panel in range(_panels(inputs)):
            right, rows = base + BYTES * (a + panel * distance), panel * _rows_of(outputs) * ROW
            for o in range(0, outputs, 5):
                left, at = base + BYTES * (errors + o), rows + o * ROW
                _five_steps(left, 1, width, 0, 1, size, right, u + at, w + at, momentum, decay, lr)
    else:
        width = LANES
        for panel in range(_panels(outputs)):
            right, rows = base + BYTES * (errors + panel * distance), panel * _rows_of(inputs) * ROW
            for i in range(0, inputs, 4):
                left = base + BYTES * (a + i // LANES * distance + i % LANES)
                at = rows + i * ROW
                _four_steps(left, 1, LANES, 0, 1, size, right, u + at, w + at, momentum, decay, lr)
    for panel in range(_panels(outputs)):
        for o in range(LANES):
            total = float32(0.0)
            begin = errors + o + (panel * LANES if layer == last else panel * distance)
            for b in range(size):
                total += work[begin + b * width]
            at = bias + panel * LANES + o
            move = momentum * work[velocity + at] + total + decay * work[model + at]
            work[velocity + at] = move
            work[model + at] -= lr * move


@compiled
def train(positions, rows, start, x, y, samples, weights, sizes, steps, mean, scale, dims, table, work, rule):
    """Train the local models of some devices by SGD with momentum, and write them into `rows`.

    Args:
        positions: [k] positions of these devices among the round's K devices.
        rows: [K, M] local models; the function writes the rows at `positions`.
        start: the models that the devices received, [1, M] or [K, M].
        x: [n, D] raw inputs. y: [n] labels.
        samples, weights: [K, steps, B]. sizes: [K, steps]. steps: [K]. As in `Batches`.
        mean, scale: [D] mean of the inputs, and factor on the centred inputs.
        dims: [layers + 1] number of inputs, widths of the hidden layers, number of classes.
        table, work: as `workspace` returns them; work starts as zeros.
        rule: momentum, decay and learning rate.
    """
    momentum, decay, lr = rule
    last = len(dims) - 2
    size_of_model = table[last + 1, 0]
    received, velocity, model, end = work[:size_of_model], size_of_model, 2 * size_of_model, 3 * size_of_model
    distance = LANES * _rows_of(samples.shape[2])
    into, z = work[table[0, 2] :], work[table[last, 3] :]
    bias = work[model + table[last, 1] :][: dims[last + 1]]
    line = work[end:]
    for place, k in enumerate(positions):
        if place == 0 or len(start) > 1:
            _carry(start[k if len(start) > 1 else 0], dims, table, received, False)
        work[velocity:model] = float32(0.0)
        work[model:end] = received
        for step in range(steps[k]):
            size = sizes[k, step]
            some = samples[k, step, :size]
            _gather(x, some, mean, scale, line, into, distance)
            _forward(size, distance, dims, table, model, work)
            _errors(z, LANES * _panels(dims[last + 1]), bias, y[some], weights[k, step, :size])
            for layer in range(last, -1, -1):
                if layer:
                    _behind(layer, size, distance, dims, table, model, work)
                _descend(layer, size, distance, dims, table, model, velocity, work, momentum, decay, lr)
        _carry(rows[k], dims, table, work[model:end], True)


def workspace(dims, batch):
    """Return the table [layers + 1, 5] of offsets in a thread's work memory, and the memory, which starts as zeros.

    A layer has five offsets: of its weights and biases in a model, its inputs, its errors (gradients with respect to
    its outputs) and its outputs. The last row holds the length of a model in panels.
    """
    place, last = 0, len(dims) - 2
    table = np.zeros((last + 2, 5), np.int64)
    for layer in range(last + 1):
        across, along = (dims[layer + 1], dims[layer]) if layer == last else (dims[layer], dims[layer + 1])
        table[layer, 0] = place
        place += LANES * _panels.py_func(along) * _rows_of.py_func(across)
        table[layer, 1] = place
        place += LANES * _panels.py_func(dims[layer + 1])
    table[last + 1, 0] = place
    # the memory begins with the received model, the velocity, the local model, and a sample
    place = 3 * place + LANES * _panels.py_func(dims[0])
    for layer in range(last + 1):
        rows = LANES * _rows_of.py_func(batch)
        if not layer:
            table[0, 2], place = place, place + rows * _panels.py_func(dims[0])
        for column in (3, 4):
            table[layer, column], place = place, place + rows * _panels.py_func(dims[layer + 1])
        if layer < last:
            table[layer + 1, 2] = table[layer, 4]
    memory = np.zeros(place + LANES, np.float32)
    begin = -memory.ctypes.data // BYTES % LANES
    return table, memory[begin:][:place]
