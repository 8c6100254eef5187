/* The replay kernel of engine/replay.py in C, for one hidden layer: the speed to hold it against. */
#include <math.h>
#include <stdint.h>

static inline uint64_t mix(uint64_t key, uint64_t counter) {
  uint64_t z = key + (counter + 1) * 0x9E3779B97F4A7C15ull;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
  return z ^ (z >> 31);
}

static inline int64_t below(uint64_t bits, uint64_t n) { return ((bits >> 32) * n) >> 32; }

void replay(float *restrict first, float *restrict output, float *restrict bias,
            float *restrict shift, const float *restrict start, double *restrict ages,
            double clock, int64_t features, int64_t width, const int64_t *restrict starts,
            const int64_t *restrict lengths, const int64_t *restrict blocks,
            const int32_t *restrict indices, const float *restrict values,
            const double *restrict squares, const double *restrict rewards, int64_t count,
            int64_t steps, double rate, double (*mean)(double), uint64_t key, float *restrict h, float *restrict delta) {
  for (int64_t j = 0; j < steps; j++) {
    int64_t i = j == 0 ? count - 1 : below(mix(key, j), count);
    int64_t base = blocks[i] * features, from = starts[i], to = starts[i] + lengths[i];
    for (int64_t k = from; k < to; k++) {
      int64_t row = base + indices[k];
      double owed = clock - ages[row];
      if (owed < -1e-3) {
        float keep = exp(owed), *w = first + row * width;
        const float *w0 = start + row * width;
        for (int64_t u = 0; u < width; u++) w[u] = w0[u] + keep * (w[u] - w0[u]);
        ages[row] = clock;
      }
    }
    for (int64_t u = 0; u < width; u++) h[u] = bias[u];
    for (int64_t k = from; k < to; k++) {
      const float *w = first + (base + indices[k]) * width;
      float v = values[k];
      for (int64_t u = 0; u < width; u++) h[u] += v * w[u];
    }
    float f = shift[0], hh = 0, dd = 0;
    for (int64_t u = 0; u < width; u++) {
      h[u] = h[u] > 0 ? h[u] : 0;
      delta[u] = h[u] > 0 ? output[u] : 0;
      f += output[u] * h[u];
      hh += h[u] * h[u];
      dd += delta[u] * delta[u];
    }
    double norm = dd * (squares[i] + 1.0) + hh + 1.0;
    double expected = mean(f), bend = (mean(f + 0x1p-10) - expected) * 0x1p10;
    double amount = rate * (rewards[i] - expected) / (1.0 + rate * bend * norm);
    double reach = (1.0 + fabs(f) + fabs(rewards[i])) / (norm + 1e-300);
    float step = fmin(fmax(amount, -reach), reach);
    for (int64_t u = 0; u < width; u++) {
      output[u] += step * h[u];
      bias[u] += step * delta[u];
    }
    shift[0] += step;
    for (int64_t k = from; k < to; k++) {
      float *w = first + (base + indices[k]) * width;
      float push = step * values[k];
      for (int64_t u = 0; u < width; u++) w[u] += push * delta[u];
    }
  }
}
