// The output layer and its softmax for the rows of a search step.
#pragma once

#include "dense.h"
#include "stepping.h"

// log softmax(W x + b), or W x + b alone. (Groups of rows whose logits fit the L2 cache were slower: they evicted the panels.)
struct Predict {
  Int rows, size, classes, slabs;
  Dense by;
  const float *x;  // [N, D]
  float *logp;     // [N, V]
  Int halves;           // 16-bit elements of a slab of `cut`
  unsigned short *cut;  // [slabs, halves], for rows split for the tiles or rounded; or NULL
  Int kind;
};

namespace {

// A NaN among the logits makes the whole row NaN, as torch does.
void log_softmax(float *x, Int n) {
  const float top = peak_of(x, n);
  const V peak = set(top), less = set(std::log(sum_of_powers(x, n, top, [](Int, M, V) {})));
  for (Int i = 0; i < n; i += W) {  // subtract the maximum first, so that small terms keep their precision
    M m = lanes(n - i);
    store(x + i, m, sub(sub(load(x + i, m), peak), less));
  }
}

inline void multiply_slab(const Predict &p, Int s) {
  const Int first = p.rows * s / p.slabs, n = p.rows * (s + 1) / p.slabs - first;
  float *logp = p.logp + first * p.classes;
  const Tiled here(p.cut);
  dense(p.by, n, p.size, p.classes, p.x + first * p.size, p.size, {p.kind, p.cut ? p.cut + s * p.halves : nullptr},
        [&](Int r, Int u, M m, V y) { store(logp + r * p.classes + u, m, y); });
}

inline void predict_slab(const Predict &p, Int s) {
  multiply_slab(p, s);
  for (Int r = p.rows * s / p.slabs; r < p.rows * (s + 1) / p.slabs; r++) log_softmax(p.logp + r * p.classes, p.classes);
}

// The output layer of one step of a whole search, for features y [N, size], perhaps through a projection into `room`.
inline void predict_step(Predict p, const Dense &project, const Step &s, const float *y, Int size, float *room) {
  p.rows = s.sources * s.width, p.slabs = 1, p.x = y, p.logp = s.logp;
  if (p.cut) p.cut += s.slab * p.halves;
  if (project.panel) {
    const Tiled here(p.cut);
    dense(project, p.rows, size, p.size, y, size, {p.kind, p.cut},
          [&](Int r, Int u, M m, V v) { store(room + r * p.size + u, m, v); });
    p.x = room;
  }
  predict_slab(p, 0);
}

}  // namespace
