// word2vec on the CPU: loss and gradients of skip-gram and CBOW with negative samples, a row of text at a time. Only real
// neighbours are multiplied, and the scores of the negative samples stay in the L2 cache until their gradient is added.
// Gradients are of whole tables, or only of rows that were read; Adagrad then changes these rows alone.
//
// Plain C interface, compiled like cells.cpp.
#include "panels.h"
#include "softmax.h"

struct Neighbours {
  Int rows, length, drawn, size, cbow, slabs;
  double share;                 // weight of a negative sample per neighbour, K / N
  const Int *index;             // [B, L] rows of u
  const Int *words;             // [B, L] rows of v
  const Int *lines, *reach;     // [B, L]; a line below 0 is padding
  const Int *noise;             // [B, N] rows of v
  const Int *index_to, *words_to, *noise_to;  // like index, words and noise: rows of du and dv
  const float *u, *v;           // [., D]
  float *du, *dv;               // [., D], accumulated; NULL without gradient
  float *room;                  // [slabs, Room::floats], buffer
  double *sums;                 // [B, 2], the result: loss and number of pairs (skip-gram) or words (CBOW)
};

struct Adagrad {
  Int rows, size, slabs;
  double rate, epsilon;
  const Int *index;             // [N] different rows of the table
  const float *gradient;        // [N, D]
  float *weight, *sum;          // [., D] the table, and the sum of the squares of its gradients
};

namespace {

inline Int padded(Int n) { return (n + W - 1) / W * W; }

// The vectors of one row of text, each padded with zeros to whole registers.
struct Room {
  Int wide, many;                      // padded D and N
  float *u, *v, *noise;                // [L, D], [L, D], [N, D]
  float *du, *dv, *dnoise;             // their gradients
  float *mean, *dmean;                 // [L, D] the mean of the neighbours (CBOW)
  float *panel;                        // the noise as panels [blocks, D, NV, W] (panels.h)
  float *scores, *number;              // [L, N], and [L] the number of neighbours
  Room(const Neighbours &p, Int slab) : wide(padded(p.size)), many(padded(p.drawn)) {
    const Int L = p.length * wide, N = many * wide;
    const Int floats = 6 * L + 2 * N + p.size * many + p.length * many + padded(p.length);
    float *at = p.room + slab * floats;
    auto next = [&](Int n) { float *found = at; at += n; return found; };
    u = next(L), v = next(L), du = next(L), dv = next(L), mean = next(L), dmean = next(L);
    noise = next(N), dnoise = next(N), panel = next(p.size * many), scores = next(p.length * many);
    number = next(padded(p.length));
  }
};

inline void gather(float *to, const float *table, const Int *index, Int n, Int size, Int wide) {
  for (Int i = 0; i < n; i++) {
    const float *row = table + index[i] * size;
    if (i + 4 < n)
      for (Int d = 0; d < size; d += 16) _mm_prefetch((const char *)(table + index[i + 4] * size + d), _MM_HINT_T0);
    for (Int d = 0; d < wide; d += W) store(to + i * wide + d, lanes(W), load(row + d, lanes(size - d)));
  }
}

inline void add_to(float *sum, const float *x, Int n, float by) {
  for (Int d = 0; d < n; d += W) store(sum + d, lanes(W), fma(set(by), whole(x + d), whole(sum + d)));
}

inline float dot(const float *x, const float *y, Int n) {
  V sum = mul(whole(x), whole(y));
  for (Int d = W; d < n; d += W) sum = fma(whole(x + d), whole(y + d), sum);
  return total(sum);
}

// c [MR, NV registers] += a [MR, K] b [K, .]; the elements of a are a_row and a_k apart
template <int MR, int NV>
NOINLINE void block(const float *a, Int a_row, Int a_k, const float *b, Int b_row, Int K, float *c, Int c_row) {
  V acc[MR][NV];
  for (int r = 0; r < MR; r++)
    for (int v = 0; v < NV; v++) acc[r][v] = whole(c + r * c_row + v * W);
  for (Int k = 0; k < K; k++) {
    V x[NV];
    for (int v = 0; v < NV; v++) x[v] = whole(b + k * b_row + v * W);
    for (int r = 0; r < MR; r++) {
      const V y = set(a[r * a_row + k * a_k]);
      for (int v = 0; v < NV; v++) acc[r][v] = fma(y, x[v], acc[r][v]);
    }
  }
  for (int r = 0; r < MR; r++)
    for (int v = 0; v < NV; v++) store(c + r * c_row + v * W, lanes(W), acc[r][v]);
}

// Call f(vectors, from) for blocks of up to four registers that cover n floats.
template <class F> inline void each_block(Int n, const F &f) {
  const Blocks blocks(n);
  for (Int j = 0; j < blocks.count; j++) {
    const Int from = blocks.first(j);
    switch (blocks.first(j + 1) - from) {
      case 1: f(std::integral_constant<int, 1>(), from); break;
      case 2: f(std::integral_constant<int, 2>(), from); break;
      case 3: f(std::integral_constant<int, 3>(), from); break;
      case 4: f(std::integral_constant<int, 4>(), from); break;
    }
  }
}

// c [n, wide] += a [n, K] b [K, wide]
inline void add_product(Int n, Int K, Int wide, const float *a, Int a_row, Int a_k, const float *b, float *c) {
  each_block(wide, [&](auto vectors, Int from) {
    constexpr int NV = decltype(vectors)::value;
    tiles<max_rows(NV)>(0, n, [&](auto height, Int row) {
      constexpr int MR = decltype(height)::value;
      block<MR, NV>(a + row * a_row, a_row, a_k, b + from * W, wide, K, c + row * wide + from * W, wide);
    });
  });
}

// scores [n, many] = x [n, D] noise^T
inline void score(const Neighbours &p, const Room &r, const float *x, Int n) {
  each_block(p.drawn, [&](auto vectors, Int from) {
    constexpr int NV = decltype(vectors)::value;
    float *panel = r.panel + from * W * p.size;
    for (Int d = 0; d < p.size; d++)
      for (Int i = 0; i < NV * W; i++)
        panel[d * NV * W + i] = from * W + i < p.drawn ? r.noise[(from * W + i) * r.wide + d] : 0.f;
    tiles<max_rows(NV)>(0, n, [&](auto height, Int row) {
      constexpr int MR = decltype(height)::value;
      V acc[MR][NV];
      for (int i = 0; i < MR; i++)
        for (int v = 0; v < NV; v++) acc[i][v] = set(0.f);
      product<MR, NV>(acc, x + row * r.wide, r.wide, panel, p.size);
      for (int i = 0; i < MR; i++)
        for (int v = 0; v < NV; v++) store(r.scores + (row + i) * r.many + (from + v) * W, lanes(W), acc[i][v]);
    });
  });
}

// Sum of log(1 + e^x) over n scores, which become weight / (1 + e^-x); those after n must be finite and become 0.
inline double soften(float *x, Int n, float weight) {
  V high = set(0.f), factor = set(1.f);
  double logs = 0;
  Int held = 0;
  auto taken = [&] {
    float each[W];
    store(each, lanes(W), factor);
    double all = 1;  // each is at most 2^16
    for (int i = 0; i < W; i++) all *= (double)each[i];
    logs += std::log(all), factor = set(1.f), held = 0;
  };
  for (Int i = 0; i < n; i += W) {
    float real[W];
    for (int j = 0; j < W; j++) real[j] = i + j < n ? 1.f : 0.f;
    const V keep = n - i < W ? whole(real) : set(1.f), y = mul(whole(x + i), keep);
    const V e = mul(keep, power(sub(set(0.f), without_sign(y)))), one = add(set(1.f), e);
    high = add(high, most(set(0.f), y)), factor = mul(factor, one);
    // 1 / (1 + e) if x > 0, else e / (1 + e)
    const V part = div(mul(keep, set(weight)), one);
    store(x + i, lanes(W), add(positive(y, sub(part, mul(e, part))), mul(e, part)));
    if (++held == 16) taken();
  }
  taken();
  return (double)total(high) + logs;
}

// Call f(t, s) for all neighbours s of t.
template <class F> inline void each_pair(const Neighbours &p, Int b, Int n, const F &f) {
  const Int *lines = p.lines + b * p.length, *reach = p.reach + b * p.length;
  for (Int t = 0; t < n; t++) {
    const Int first = t > reach[t] ? t - reach[t] : 0, last = t + reach[t] < n - 1 ? t + reach[t] : n - 1;
    for (Int s = first; s <= last; s++)
      if (s != t && lines[s] == lines[t] && lines[t] >= 0) f(t, s);
  }
}

// Call f(t, neighbours, how many) for each t, with some of its neighbours at a time.
constexpr int AT_ONCE = 32;
template <class F> inline void each_word(const Neighbours &p, Int b, Int n, const F &f) {
  Int near[AT_ONCE], some = 0, of = 0;
  auto taken = [&] {
    if (some) f(of, near, some);
    some = 0;
  };
  each_pair(p, b, n, [&](Int t, Int s) {
    if (t != of || some == AT_ONCE) taken();
    of = t, near[some++] = s;
  });
  taken();
}

struct Step {
  const Neighbours *p;
  Int first, slabs;  // each slab has one row
};

inline Int real(const Neighbours &p, Int b) {
  Int n = p.length;
  while (n && p.lines[b * p.length + n - 1] < 0) n--;
  return n;
}

void read(const Step &step, Int slab) {
  const Neighbours &p = *step.p;
  const Int b = step.first + slab, n = real(p, b);
  const Room r(p, slab);
  const bool grads = p.du != nullptr;
  auto zero = [&](float *x, Int rows) { std::memset(x, 0, rows * r.wide * sizeof(float)); };
  gather(r.u, p.u, p.index + b * p.length, n, p.size, r.wide);
  gather(r.v, p.v, p.words + b * p.length, n, p.size, r.wide);
  gather(r.noise, p.v, p.noise + b * p.drawn, p.drawn, p.size, r.wide);
  zero(r.du, n), zero(r.dv, n), zero(r.dnoise, p.drawn);
  for (Int t = 0; t < n; t++) r.number[t] = 0;
  double loss = 0, count = 0;
  float *x = r.u, *dx = r.du;  // what the negative samples are compared with
  if (p.cbow) {
    x = r.mean, dx = r.dmean;
    zero(x, n), zero(dx, n);
    each_pair(p, b, n, [&](Int t, Int s) { add_to(x + t * r.wide, r.u + s * r.wide, r.wide, 1.f), r.number[t]++; });
    float *z = r.scores;  // minus the score of each word, then its logistic function
    Int some = 0;
    for (Int t = 0; t < n; t++) {
      if (!r.number[t]) continue;
      float *mean = x + t * r.wide;
      for (Int d = 0; d < r.wide; d++) mean[d] /= r.number[t];
      z[some++] = -dot(mean, r.v + t * r.wide, r.wide);
    }
    std::memset(z + some, 0, (padded(some) - some) * sizeof(float));
    loss += soften(z, some, 1.f), count += some;
    for (Int t = 0, i = 0; t < n; t++) {
      if (!r.number[t]) continue;
      const float g = -z[i++];
      add_to(dx + t * r.wide, r.v + t * r.wide, r.wide, g), add_to(r.dv + t * r.wide, x + t * r.wide, r.wide, g);
    }
  } else {
    each_word(p, b, n, [&](Int t, const Int *near, Int some) {
      float z[AT_ONCE] = {};
      for (Int i = 0; i < some; i++) z[i] = -dot(x + t * r.wide, r.v + near[i] * r.wide, r.wide);
      loss += soften(z, some, 1.f), count += some, r.number[t] += some;
      for (Int i = 0; i < some; i++) {
        const Int s = near[i];
        add_to(dx + t * r.wide, r.v + s * r.wide, r.wide, -z[i]), add_to(r.dv + s * r.wide, x + t * r.wide, r.wide, -z[i]);
      }
    });
  }
  score(p, r, x, n);
  for (Int t = 0; t < n; t++) {
    const float weight = (float)p.share * (p.cbow ? r.number[t] > 0 : r.number[t]);
    float *scores = r.scores + t * r.many;
    if (weight) loss += weight * soften(scores, p.drawn, weight);
    else std::memset(scores, 0, r.many * sizeof(float));
  }
  p.sums[2 * b] = loss, p.sums[2 * b + 1] = count;
  if (!grads) return;
  add_product(n, p.drawn, r.wide, r.scores, r.many, 1, r.noise, dx);
  add_product(p.drawn, n, r.wide, r.scores, 1, r.many, x, r.dnoise);
  if (p.cbow)
    each_pair(p, b, n, [&](Int t, Int s) { add_to(r.du + s * r.wide, dx + t * r.wide, r.wide, 1.f / r.number[t]); });
}

// Add gradients to the rows of a table that belong to this part, in the order of the text for any number of parts.
inline void spread(float *table, const float *grads, const Int *index, Int n, Int size, Int wide, Int part, Int parts) {
  for (Int i = 0; i < n; i++) {
    if (index[i] % parts != part) continue;
    float *row = table + index[i] * size;
    for (Int d = 0; d < size; d += W) {
      const M m = lanes(size - d);
      store(row + d, m, add(load(row + d, m), whole(grads + i * wide + d)));
    }
  }
}

void write(const Step &step, Int part) {
  const Neighbours &p = *step.p;
  for (Int slab = 0; slab < step.slabs; slab++) {
    const Int b = step.first + slab, n = real(p, b);
    const Room r(p, slab);
    spread(p.du, r.du, p.index_to + b * p.length, n, p.size, r.wide, part, step.slabs);
    spread(p.dv, r.dv, p.words_to + b * p.length, n, p.size, r.wide, part, step.slabs);
    spread(p.dv, r.dnoise, p.noise_to + b * p.drawn, p.drawn, p.size, r.wide, part, step.slabs);
  }
}

inline V root(V x) {
#if defined(__AVX512F__)
  return _mm512_sqrt_ps(x);
#else
  return _mm256_sqrt_ps(x);
#endif
}

// s = s + g^2, w = w - rate g / (sqrt(s) + epsilon)
void step_rows(const Adagrad &p, Int slab) {
  const V epsilon = set((float)p.epsilon), rate = set((float)p.rate);
  for (Int i = p.rows * slab / p.slabs; i < p.rows * (slab + 1) / p.slabs; i++) {
    const Int from = p.index[i] * p.size;
    if (i + 2 < p.rows)
      for (Int d = 0; d < p.size; d += 16) {
        _mm_prefetch((const char *)(p.sum + p.index[i + 2] * p.size + d), _MM_HINT_T0);
        _mm_prefetch((const char *)(p.weight + p.index[i + 2] * p.size + d), _MM_HINT_T0);
      }
    for (Int d = 0; d < p.size; d += W) {
      const M m = lanes(p.size - d);
      const V g = load(p.gradient + i * p.size + d, m), sum = fma(g, g, load(p.sum + from + d, m));
      store(p.sum + from + d, m, sum);
      store(p.weight + from + d, m, sub(load(p.weight + from + d, m), div(mul(rate, g), add(root(sum), epsilon))));
    }
  }
}

}  // namespace

API void weft_adagrad(const Adagrad *work, Start start) { run<Adagrad, step_rows>(work, start); }
API Int weft_neighbours_version() { return 5; }  // version of the struct above; must equal VERSION in jobs.py
API void weft_neighbours(const Neighbours *work, Start start) {
  for (Int first = 0; first < work->rows; first += work->slabs) {
    const Int left = work->rows - first;
    const Step step = {work, first, left < work->slabs ? left : work->slabs};
    run<Step, read>(&step, start);
    if (work->du) run<Step, write>(&step, start);
  }
}
