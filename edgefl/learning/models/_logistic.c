/* The gradients of logistic regression for devices with a model each, and the logits of one model.

   Every output is a sum over inputs or samples in one order, lane by lane of a vector, whatever is computed beside it:
   so a device's gradient depends neither on the other devices nor on the padding of its batch. */

#include <stdint.h>
#include <string.h>

#if defined(__AVX512F__)
#define LANES 16
#define FORWARD_ROWS 5 /* of 32 registers 4 x 5 sums, 4 samples, a row of weights */
#elif defined(__AVX__)
#define LANES 8
#define FORWARD_ROWS 2 /* of 16 */
#else
#define LANES 4
#define FORWARD_ROWS 2
#endif
#define SAMPLES 4
#define BACKWARD_ROWS 10
#define AHEAD 8 /* samples: they lie anywhere in memory, which takes longer to answer than one takes to convert */
#define TESTED 32 /* samples at a time, which stay in the second-level cache */

typedef float vector __attribute__((vector_size(4 * LANES)));
typedef int32_t integers __attribute__((vector_size(4 * LANES)));
typedef float four __attribute__((vector_size(16)));
#define TILE static inline __attribute__((always_inline)) void

static inline vector all(const float *from) {
    vector v;
    memcpy(&v, from, sizeof v);
    return v;
}

static inline vector some(const float *from, size_t count) {
    vector v = {0};
    memcpy(&v, from, 4 * count);
    return v;
}

static inline float sum(vector v) {
    four parts[LANES / 4], total;
    memcpy(parts, &v, sizeof v);
    total = parts[0];
    for (int part = 1; part < LANES / 4; part++) total += parts[part];
    return (total[0] + total[1]) + (total[2] + total[3]);
}

static inline vector larger(vector a, vector b) {
    integers above = a > b;
    return (vector)((above & (integers)a) | (~above & (integers)b));
}

/* exp(x) for x <= 0, to two units in the last place (0 below -87): 2^n exp(r), |r| <= ln 2 / 2, by Taylor's series */
static inline vector exponential(vector x) {
    vector n, r, p;
    x = larger((vector){0} - 87.0f, x);
    integers whole = __builtin_convertvector(x * 1.44269504f - 0.5f, integers); /* rounds to nearest, as x <= 0 */
    n = __builtin_convertvector(whole, vector);
    r = (x - n * 0.693359375f) - n * -2.12194440e-4f;
    p = 1.0f / 5040 + (vector){0};
    p = p * r + 1.0f / 720;
    p = p * r + 1.0f / 120;
    p = p * r + 1.0f / 24;
    p = p * r + 1.0f / 6;
    p = p * r + 0.5f;
    p = p * r + 1.0f;
    p = p * r + 1.0f;
    return p * (vector)((whole + 127) << 23);
}

/* out[r, b] = scale sum_d w[r, d] x[b, d] + offset[r], for a tile of samples and rows */
TILE forward_tile(const float *x, const float *w, const float *offset, float scale, float *out, size_t inputs,
                  size_t stride, int samples, int rows) {
    vector sums[SAMPLES][FORWARD_ROWS];
    size_t whole = inputs - inputs % LANES, rest = inputs - whole, d;
    for (int b = 0; b < samples; b++)
        for (int r = 0; r < rows; r++) sums[b][r] = (vector){0};
    for (d = 0; d < whole; d += LANES) {
        vector xs[SAMPLES];
        for (int b = 0; b < samples; b++) xs[b] = all(x + b * inputs + d);
        for (int r = 0; r < rows; r++) {
            vector row = all(w + r * inputs + d);
            for (int b = 0; b < samples; b++) sums[b][r] += xs[b] * row;
        }
    }
    for (int r = 0; rest && r < rows; r++) {
        vector row = some(w + r * inputs + d, rest);
        for (int b = 0; b < samples; b++) sums[b][r] += some(x + b * inputs + d, rest) * row;
    }
    for (int r = 0; r < rows; r++)
        for (int b = 0; b < samples; b++) out[r * stride + b] = scale * sum(sums[b][r]) + offset[r];
}

TILE forward_rows(const float *x, const float *w, const float *offset, float scale, float *out, size_t batch,
                  size_t inputs, size_t stride, int rows) {
    size_t b = 0;
    for (; b + SAMPLES <= batch; b += SAMPLES)
        forward_tile(x + b * inputs, w, offset, scale, out + b, inputs, stride, SAMPLES, rows);
    for (; b < batch; b++) forward_tile(x + b * inputs, w, offset, scale, out + b, inputs, stride, 1, rows);
}

/* x [batch, inputs]; w [classes, inputs]; offset [classes]; out [classes, stride], its first `batch` columns */
void logits(const float *x, const float *w, const float *offset, float *out, size_t batch, size_t classes,
            size_t inputs, size_t stride, float scale) {
    size_t r = 0;
    for (; r + FORWARD_ROWS <= classes; r += FORWARD_ROWS)
        forward_rows(x, w + r * inputs, offset + r, scale, out + r * stride, batch, inputs, stride, FORWARD_ROWS);
    for (; r < classes; r++)
        forward_rows(x, w + r * inputs, offset + r, scale, out + r * stride, batch, inputs, stride, 1);
}

/* out[r, d] = scale sum_b delta[r, b] x[b, d] + offset[r], for `count` inputs and a tile of rows */
TILE backward_tile(const float *x, const float *delta, const float *offset, float scale, float *out, size_t batch,
                   size_t inputs, size_t stride, int rows, size_t count) {
    vector sums[BACKWARD_ROWS];
    for (int r = 0; r < rows; r++) sums[r] = (vector){0};
    for (size_t b = 0; b < batch; b++) {
        vector xs = some(x + b * inputs, count);
        for (int r = 0; r < rows; r++) sums[r] += xs * delta[r * stride + b];
    }
    for (int r = 0; r < rows; r++) {
        vector gradient = scale * sums[r] + offset[r];
        memcpy(out + r * inputs, &gradient, 4 * count);
    }
}

TILE backward_rows(const float *x, const float *delta, const float *offset, float scale, float *out, size_t batch,
                   size_t inputs, size_t stride, int rows) {
    size_t d = 0;
    for (; d + LANES <= inputs; d += LANES)
        backward_tile(x + d, delta, offset, scale, out + d, batch, inputs, stride, rows, LANES);
    if (d < inputs) backward_tile(x + d, delta, offset, scale, out + d, batch, inputs, stride, rows, inputs - d);
}

/* From logits [classes, stride] to delta = weight (softmax - onehot), in place; by_bias[r] = sum_b delta[r, b] */
static void deltas(float *z, const int64_t *y, const float *weight, float *by_bias, size_t batch, size_t classes,
                   size_t stride) {
    for (size_t b = 0; b < batch; b += LANES) {
        vector largest = all(z + b), total = {0}, each = some(weight + b, batch - b < LANES ? batch - b : LANES);
        for (size_t r = 1; r < classes; r++) largest = larger(all(z + r * stride + b), largest);
        for (size_t r = 0; r < classes; r++) {
            vector power = exponential(all(z + r * stride + b) - largest);
            memcpy(z + r * stride + b, &power, sizeof power);
            total += power;
        }
        each /= total;
        for (size_t r = 0; r < classes; r++) {
            vector share = all(z + r * stride + b) * each;
            memcpy(z + r * stride + b, &share, sizeof share);
        }
    }
    for (size_t b = 0; b < batch; b++) z[y[b] * stride + b] -= weight[b];
    for (size_t r = 0; r < classes; r++) {
        vector sums = {0};
        for (size_t b = 0; b < stride; b += LANES) sums += all(z + r * stride + b);
        by_bias[r] = sum(sums);
    }
}

static void gather(const uint8_t *bytes, const int64_t *samples, float *x, size_t batch, size_t inputs) {
    for (size_t b = 0; b < batch; b++, x += inputs) {
        const uint8_t *from = bytes + samples[b] * inputs;
        if (b + AHEAD < batch)
            for (size_t d = 0; d < inputs; d += 64) __builtin_prefetch(bytes + samples[b + AHEAD] * inputs + d);
        for (size_t d = 0; d < inputs; d++) x[d] = from[d];
    }
}

/* The logits of `samples` [count] of `bytes`, as above; x is room for TESTED of them. */
void logits_of_bytes(const uint8_t *bytes, const int64_t *samples, float *x, const float *w, const float *offset,
                     float *out, size_t count, size_t classes, size_t inputs, size_t stride, float scale) {
    for (size_t b = 0; b < count; b += TESTED) {
        size_t some = count - b < TESTED ? count - b : TESTED;
        gather(bytes, samples + b, x, some, inputs);
        logits(x, w, offset, out + b, some, classes, inputs, stride, scale);
    }
}

/* The gradients of `count` devices at their models, on batches that end with the last sample of weight other than 0.

   x [count, width, inputs] raw inputs, which stand for (x - mean) scale; or room for a device's, and they are the
   `samples` [count, batch] of `bytes`; y, weight [count, batch]; rows, out [count, row]: weights [classes, inputs],
   then biases; room: classes (batch + 2 LANES) numbers. */
void gradients(float *x, const uint8_t *bytes, const int64_t *samples, const int64_t *y, const float *weight,
               const float *rows, float *out, float *room, size_t count, size_t width, size_t batch, size_t classes,
               size_t inputs, size_t row, float mean, float scale) {
    size_t weights = classes * inputs, whole = inputs - inputs % LANES;
    for (size_t k = 0; k < count; k++, y += batch, weight += batch) {
        size_t there = batch;
        while (there && !weight[there - 1]) there--;
        size_t stride = (there + LANES - 1) / LANES * LANES;
        float *z = room, *offset = room + classes * stride;
        if (bytes) gather(bytes, samples + k * batch, x, there, inputs);
        const float *w = rows + k * row, *from = bytes ? x : x + k * width * inputs;
        float *by_bias = out + k * row + weights;
        for (size_t r = 0; r < classes; r++) {
            vector sums = some(w + r * inputs + whole, inputs - whole);
            for (size_t d = 0; d < whole; d += LANES) sums += all(w + r * inputs + d);
            offset[r] = w[weights + r] - mean * scale * sum(sums);
        }
        memset(z, 0, 4 * classes * stride);
        logits(from, w, offset, z, there, classes, inputs, stride, scale);
        deltas(z, y, weight, by_bias, there, classes, stride);
        for (size_t r = 0; r < classes; r++) offset[r] = -mean * scale * by_bias[r];
        float *to = out + k * row;
        size_t r = 0;
        for (; r + BACKWARD_ROWS <= classes; r += BACKWARD_ROWS)
            backward_rows(from, z + r * stride, offset + r, scale, to + r * inputs, there, inputs, stride, BACKWARD_ROWS);
        for (; r + 3 <= classes; r += 3)
            backward_rows(from, z + r * stride, offset + r, scale, to + r * inputs, there, inputs, stride, 3);
        for (; r < classes; r++)
            backward_rows(from, z + r * stride, offset + r, scale, to + r * inputs, there, inputs, stride, 1);
    }
}
