// The best continuations of a beam on the CPU (choosing.h), from tensors of torch.
//
// Plain C interface, compiled like cells.cpp.
#include "choosing.h"

struct Choose {
  Int sources, beam, classes, apart, count, slabs;  // apart: floats between row starts
  const float *logp;            // [B W, V]
  const double *base;           // [B, W]; -inf marks a missing row, which is not read
  const Int *banned;            // tokens in ascending order, followed by V
  double *value;                // [B, k], the result; -inf if there are fewer than k
  Int *parent, *token;          // [B, k]
};

namespace {

inline void slab(const Choose &c, Int s) {
  for (Int b = c.sources * s / c.slabs; b < c.sources * (s + 1) / c.slabs; b++) {
    Best best = {c.value + b * c.count, c.parent + b * c.count, c.token + b * c.count, c.count, 0};
    for (Int w = 0; w < c.beam; w++) {
      const double base = c.base[b * c.beam + w];
      if (base == -INFINITY) continue;
      scan(best, c.logp + (b * c.beam + w) * c.apart, c.classes, base, w, c.banned);
    }
    for (Int i = best.found; i < c.count; i++) best.value[i] = -INFINITY, best.parent[i] = best.token[i] = 0;
  }
}

}  // namespace

API Int weft_choosing_version() { return 4; }  // version of the struct above; must equal VERSION in jobs.py
API void weft_choose(const Choose *work, Start start) { run<Choose, slab>(work, start); }
