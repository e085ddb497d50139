// Additive attention's energies, w^T tanh(q + k) of every query of a source with every key (scores/additive.py), and
// their gradients, on the CPU in float32. The hidden layer [B, Q, S, A] is never stored: the backward pass
// recomputes it, which costs less than writing and reading it. Each thread takes a slab of sources.
//
// Plain C interface, compiled like cells.cpp.
#include "common.h"

struct Energies {
  Int sources, queries, places, size, keys_source, keys_place, slabs;
  const float *query;   // [B, Q, A]
  const float *keys;    // [B, S, A] with its strides
  const float *weight;  // [A]
  float *energy;        // [B, Q, S]; in the backward pass its gradient, an input
  float *dquery;        // [B, Q, A], zeros at the start
  float *dkeys;         // [B, S, A], zeros at the start
  float *dweight;       // [slabs, A], zeros at the start
};

namespace {

inline void forward(const Energies &e, Int s) {
  const Int first = e.sources * e.queries * s / e.slabs, last = e.sources * e.queries * (s + 1) / e.slabs;
  for (Int n = first; n < last; n++) {
    const float *q = e.query + n * e.size, *keys = e.keys + n / e.queries * e.keys_source;
    for (Int p = 0; p < e.places; p++) {
      const float *k = keys + p * e.keys_place;
      V sum = set(0.f);
      for (Int u = 0; u < e.size; u += W) {
        M m = lanes(e.size - u);  // lanes past the end have weight zero
        sum = fma(load(e.weight + u, m), tangent(add(load(q + u, m), load(k + u, m))), sum);
      }
      e.energy[n * e.places + p] = total(sum);
    }
  }
}

// One register of units after the other, so that its gradients of query and weight stay in registers.
inline void backward(const Energies &e, Int s) {
  float *dweight = e.dweight + s * e.size;
  for (Int b = e.sources * s / e.slabs; b < e.sources * (s + 1) / e.slabs; b++)
    for (Int u = 0; u < e.size; u += W) {
      const M m = lanes(e.size - u);
      const V w = load(e.weight + u, m);
      V dw = load(dweight + u, m);
      for (Int n = b * e.queries; n < (b + 1) * e.queries; n++) {
        const V q = load(e.query + n * e.size + u, m);
        V dq = set(0.f);
        for (Int p = 0; p < e.places; p++) {
          const float given = e.energy[n * e.places + p];
          if (given == 0.f) continue;  // padding
          const V g = set(given), t = tangent(add(q, load(e.keys + b * e.keys_source + p * e.keys_place + u, m)));
          float *dkey = e.dkeys + (b * e.places + p) * e.size + u;
          const V d = mul(mul(g, w), slope_tangent(t));
          dw = fma(g, t, dw), dq = add(dq, d);
          store(dkey, m, add(load(dkey, m), d));
        }
        store(e.dquery + n * e.size + u, m, dq);
      }
      store(dweight + u, m, dw);
    }
}

}  // namespace

API Int weft_energies_version() { return 4; }  // version of the struct above; must equal VERSION in jobs.py
API void weft_energies(const Energies *work, Start start) { run<Energies, forward>(work, start); }
API void weft_energies_back(const Energies *work, Start start) { run<Energies, backward>(work, start); }
