// Softmax, cross-entropy and their gradient over rows of logits on the CPU: a row stays in the L1 cache from
// its first reading until its gradient is written.
//
// Plain C interface, compiled like cells.cpp.
#include "softmax.h"

struct Losses {
  Int rows, classes, slabs, half;  // half: logits and gradients are bfloat16, else float32
  double smoothing;
  const void *logits;  // [N, V]
  const float *bias;   // [V] or NULL
  const Int *target;   // [N]
  void *gradient;      // [N, V], the result, may be the logits; NULL if not wanted
  float *dbias;        // [slabs, V], accumulated; NULL without bias or without gradient
  float *room;         // [slabs, V], buffer
  double *sums;        // [slabs, 2], accumulated: the smoothed sum and the plain sum
};

namespace {

template <class T> inline float read(T x);
template <> inline float read<float>(float x) { return x; }
template <> inline float read<unsigned short>(unsigned short x) { return widened(x); }
template <class T> inline T written(float x);
template <> inline float written<float>(float x) { return x; }
template <> inline unsigned short written<unsigned short>(float x) { return narrowed(x); }

inline double sum_of(const float *x, Int n) {
  constexpr Int PIECE = 64 * W;  // short enough for accurate float32 sums
  double all = 0;
  for (Int at = 0; at < n; at += PIECE) {
    const Int end = at + PIECE < n ? at + PIECE : n;
    V sum = set(0.f);
    for (Int i = at; i < end; i += W) {
      float rest[W] = {0};
      if (end - i >= W) sum = add(sum, whole(x + i));
      else {
        for (Int j = i; j < end; j++) rest[j - i] = x[j];
        sum = add(sum, whole(rest));
      }
    }
    all += (double)total(sum);
  }
  return all;
}

template <class T> inline void rows_of(const Losses &p, Int s) {
  const Int classes = p.classes;
  const double mean = p.smoothing / (double)classes;
  float *room = p.room + s * classes, *dbias = p.dbias ? p.dbias + s * classes : nullptr;
  for (Int r = p.rows * s / p.slabs; r < p.rows * (s + 1) / p.slabs; r++) {
    const T *z = (const T *)p.logits + r * classes;
    if (p.bias) for (Int i = 0; i < classes; i++) room[i] = read<T>(z[i]) + p.bias[i];
    else for (Int i = 0; i < classes; i++) room[i] = read<T>(z[i]);
    const float top = peak_of(room, classes);
    const double wanted = (double)room[p.target[r]] - top;
    const double average = p.smoothing ? sum_of(room, classes) / classes - top : 0;
    const float all = sum_of_powers(room, classes, top, [&](Int i, M m, V e) { store(room + i, m, e); });
    const double least = std::log((double)all);  // -log of the largest probability
    p.sums[2 * s] += (1 - p.smoothing) * (least - wanted) + p.smoothing * (least - average);
    p.sums[2 * s + 1] += least - wanted;
    if (!p.gradient) continue;
    T *out = (T *)p.gradient + r * classes;
    const float by = 1.f / all, less = (float)mean, right = (float)(1 - p.smoothing);
    room[p.target[r]] -= right * all;  // (e - right * all) / all = p - right
    if (dbias)
      for (Int i = 0; i < classes; i++) {
        const float g = room[i] * by - less;
        dbias[i] += g;
        out[i] = written<T>(g);
      }
    else
      for (Int i = 0; i < classes; i++) out[i] = written<T>(room[i] * by - less);
  }
}

inline void slab(const Losses &p, Int s) {
  if (p.half) rows_of<unsigned short>(p, s);
  else rows_of<float>(p, s);
}

}  // namespace

API Int weft_losses_version() { return 4; }  // version of the struct above; must equal VERSION in jobs.py
API void weft_losses(const Losses *work, Start start) { run<Losses, slab>(work, start); }
