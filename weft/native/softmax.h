// The exponential of numbers up to 0, the parts of a softmax over one row, and bfloat16.
#pragma once

#include "common.h"

#include <cmath>

namespace {

inline V power(V x) {  // e^x for x <= 0
  Power e(most(set(-87.f), x));
  return fma(e.p, e.scale, e.scale);
}

// The maximum of a row, ignoring NaN, which shows up in the sum.
inline float peak_of(const float *x, Int n) {
  constexpr int N = 4;  // independent registers, so that none waits for the previous one
  V high[N];
  for (int v = 0; v < N; v++) high[v] = set(-INFINITY);
  Int i = 0;
  for (; i + N * W <= n; i += N * W)
    for (int v = 0; v < N; v++) high[v] = most(whole(x + i + v * W), high[v]);
  float top = largest(most(most(high[0], high[1]), most(high[2], high[3])));
  for (; i < n; i++) top = x[i] > top ? x[i] : top;
  return top;
}

// Sum of e^(x - top), each passed to OUT(i, lanes, register); the order depends on the row alone.
template <class Out> inline float sum_of_powers(const float *x, Int n, float top, Out out) {
  constexpr int N = 4;
  const V peak = set(top);
  V sum[N];
  for (int v = 0; v < N; v++) sum[v] = set(0.f);
  Int i = 0;
  for (; i + N * W <= n; i += N * W)
    for (int v = 0; v < N; v++) {
      V e = power(sub(whole(x + i + v * W), peak));
      out(i + v * W, lanes(W), e);
      sum[v] = add(sum[v], e);
    }
  float all = total(add(add(sum[0], sum[1]), add(sum[2], sum[3])));
  for (; i < n; i += W) {
    float rest[W];
    const Int count = n - i < W ? n - i : W;
    V e = power(sub(load(x + i, lanes(count)), peak));
    out(i, lanes(count), e);
    store(rest, lanes(W), e);
    for (Int j = 0; j < count; j++) all += rest[j];
  }
  return all;
}

inline float widened(unsigned short half) {
  unsigned bits = (unsigned)half << 16;
  float value;
  memcpy(&value, &bits, sizeof value);
  return value;
}

inline unsigned short narrowed(float value) {  // round to nearest, ties to even
  unsigned bits;
  memcpy(&bits, &value, sizeof bits);
  unsigned near = (bits + 0x7fff + ((bits >> 16) & 1)) >> 16;
  return (unsigned short)(value == value ? near : 0x7fc0);
}

}  // namespace
