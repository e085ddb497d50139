// The equation of each recurrent cell, written once, for a register of units: what cells.cpp computes for all steps of a
// layer, light.cpp without a matrix, and recurrent.h and layers.h for a step of a search. In Python: nn/kernels/equations.py.
#pragma once

#include "common.h"

namespace {

// f a + (1 - f) b, the state of every cell whose gates sum to one.
inline V mixed(V f, V a, V b) { return fma(f, sub(a, b), b); }

struct LSTMStep { V i, f, candidate, o, c, h; };

// c = f c + i c^, h = o tanh(c), from pre-activations. peep [3, H]: what i, f and o read of c, or NULL.
INLINE LSTMStep lstm(V i, V f, V candidate, V o, V c, const float *peep = nullptr, Int H = 0, M m = M()) {
  LSTMStep y;
  if (peep) i = fma(c, load(peep, m), i), f = fma(c, load(peep + H, m), f);
  y.i = sigmoid(i), y.f = sigmoid(f), y.candidate = tangent(candidate);
  y.c = fma(y.f, c, mul(y.i, y.candidate));
  y.o = sigmoid(peep ? fma(y.c, load(peep + 2 * H, m), o) : o);
  y.h = mul(y.o, tangent(y.c));
  return y;
}

// An LSTM whose input gate is 1 - f; i is not set.
INLINE LSTMStep coupled(V f, V candidate, V o, V c) {
  LSTMStep y;
  y.f = sigmoid(f), y.candidate = tangent(candidate), y.o = sigmoid(o);
  y.c = mixed(y.f, c, y.candidate);
  y.h = mul(y.o, tangent(y.c));
  return y;
}

struct GRUStep { V r, u, candidate, h; };

// h = u h + (1 - u) c^, c^ = tanh(x + r inner), with inner = W_h h + b of the candidate.
INLINE GRUStep gru(V r, V u, V x, V inner, V h) {
  GRUStep y;
  y.r = sigmoid(r), y.u = sigmoid(u), y.candidate = tangent(fma(y.r, inner, x));
  y.h = mixed(y.u, h, y.candidate);
  return y;
}

}  // namespace
