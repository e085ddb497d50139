// The best continuations of a beam. Each row of log-probabilities is read once, and few of its numbers enter the list of
// the best. Sums are in double, as in candidates.py, so both find the same list in the same order: larger sum first,
// then earlier parent, then lower token.
#pragma once

#include "common.h"

#include <cmath>

namespace {

// Lanes above the bound or NaN; NaN counts as the largest value.
#if defined(__AVX512F__)
inline unsigned above(V x, V bound) { return _mm512_cmp_ps_mask(x, bound, _CMP_NLE_UQ); }
#else
inline unsigned above(V x, V bound) { return _mm256_movemask_ps(_mm256_cmp_ps(x, bound, _CMP_NLE_UQ)); }
#endif

struct Best {
  double *value;
  Int *parent, *token, count, found;

  double least() const { return found < count ? -INFINITY : value[count - 1]; }
  static bool before(double a, double b) { return a > b || (a != a && b == b); }

  void add(double sum, Int p, Int t) {
    if (sum == -INFINITY || (found == count && !before(sum, value[count - 1]))) return;
    Int at = found < count ? found++ : count - 1;
    for (; at && before(sum, value[at - 1]); at--)
      value[at] = value[at - 1], parent[at] = parent[at - 1], token[at] = token[at - 1];
    value[at] = sum, parent[at] = p, token[at] = t;
  }
};

// The float below which no sum with this base enters the list.
inline float bound_of(double least, double base) {
  if (least != least) return INFINITY;  // all are NaN
  double bound = least - base;
  return bound != bound ? -INFINITY : std::nextafter((float)bound, -INFINITY);
}

// Add the tokens of row x [V] of hypothesis w, whose sum is `base`. banned: tokens in ascending order, followed by V.
inline void scan(Best &best, const float *x, Int classes, double base, Int w, const Int *banned) {
  float bound = bound_of(best.least(), base);
  for (Int v = 0; v < classes; v += W) {
    const Int left = classes - v;
    unsigned high = above(load(x + v, lanes(left)), set(bound));
    if (left < W) high &= (1u << left) - 1;
    if (!high) continue;
    for (; high; high &= high - 1) {
      const Int token = v + __builtin_ctz(high);
      while (*banned < token) banned++;
      if (*banned != token) best.add(base + (double)x[token], w, token);
    }
    bound = bound_of(best.least(), base);
  }
}

}  // namespace
