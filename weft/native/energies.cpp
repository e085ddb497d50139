// Additive attention's energies, w^T tanh(q + k) of every query of a source with every key (nn/scores.py), and
// their gradients, on the CPU in float32. The hidden layer [B, Q, S, A] is never stored: the backward pass
// recomputes it, which costs less than writing and reading it. Each thread takes a slab of sources.
//
// `Look` is the whole of such attention: energies, softmax over the real places, weighted sum of the values. Where the
// caller has e^2k of the keys, which many steps of a decoder read, tanh(q + k) = (e^2q e^2k - 1) / (e^2q e^2k + 1) needs
// no exponential of its own.
//
// Plain C interface, compiled like cells.cpp.
#include "softmax.h"

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

struct Look {
  Int sources, queries, places, size, width, keys_source, keys_place, values_source, values_place, slabs;
  const float *query;         // [B, Q, A]
  const float *keys;          // [B, S, A] with its strides
  const float *powers;        // [B, S, A] e^2k; NULL if it is not known or a key is outside of -RANGE to RANGE
  const float *weight;        // [A]
  const float *values;        // [B, S, D] with its strides
  const unsigned char *mask;  // [B, S], 1 = real
  float *weights;             // [B, Q, S]; in the backward pass an input
  float *context;             // [B, Q, D]; in the backward pass its gradient, an input
  float *dquery;              // [B, Q, A], zeros at the start
  float *dkeys;               // [B, S, A], accumulated
  float *dweight;             // [slabs, A], accumulated
  float *room;                // [slabs, A + S], buffer
};

namespace {

constexpr float RANGE = 20;  // e^2(q + k) stays finite and above 0

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

struct Every {};  // all lanes
inline V load(const float *p, Every) { return whole(p); }
inline void store(float *p, Every, V v) { memcpy(p, &v, sizeof v); }

// PART(u, lanes) for each register of n numbers.
template <class Part> inline void registers(Int n, Part part) {
  Int u = 0;
  for (; u + W <= n; u += W) part(u, Every());
  if (u < n) part(u, lanes(n - u));
}

// A query of `Look`, and where its numbers are.
struct Asked {
  const Look &l;
  const float *query, *keys, *powers, *values;
  const unsigned char *mask;
  float *weights, *context, *power;  // power: e^2q, [A]
  bool direct;                       // without powers

  Asked(const Look &l, Int n, float *room) : l(l), power(room) {
    const Int b = n / l.queries;
    query = l.query + n * l.size, keys = l.keys + b * l.keys_source, powers = l.powers + b * l.places * l.size;
    values = l.values + b * l.values_source, mask = l.mask + b * l.places;
    weights = l.weights + n * l.places, context = l.context + n * l.width;
    direct = !l.powers;
    if (direct) return;
    V wide = set(0.f);
    for (Int u = 0; u < l.size; u += W) {
      const M m = lanes(l.size - u);
      const V q = load(query + u, m);
      wide = most(without_sign(q), wide);
      const Power e(add(q, q));
      store(power + u, m, fma(e.p, e.scale, e.scale));
    }
    direct = !(largest(wide) <= RANGE);
  }

  // SUM(u, lanes, tanh, its slope) for all units of a place.
  template <class Sum> void units(Int p, Sum sum) const {
    const V one = set(1.f);
    if (direct) {
      const float *key = keys + p * l.keys_place;
      registers(l.size, [&](Int u, auto m) {
        const V t = tangent(add(load(query + u, m), load(key + u, m)));
        sum(u, m, t, slope_tangent(t));
      });
    } else {
      const float *key = powers + p * l.size;
      registers(l.size, [&](Int u, auto m) {
        const V a = mul(load(power + u, m), load(key + u, m)), r = div(one, add(a, one));
        sum(u, m, mul(sub(a, one), r), mul(mul(set(4.f), mul(a, r)), r));
      });
    }
  }
};

inline void look(const Look &l, Int s) {
  for (Int n = l.sources * l.queries * s / l.slabs; n < l.sources * l.queries * (s + 1) / l.slabs; n++) {
    const Asked a(l, n, l.room + s * (l.size + l.places));
    float top = -INFINITY, all = 0;
    for (Int p = 0; p < l.places; p++) {
      if (!a.mask[p]) continue;
      V sum = set(0.f);
      a.units(p, [&](Int u, auto m, V t, V) { sum = fma(load(l.weight + u, m), t, sum); });
      a.weights[p] = total(sum);
      top = a.weights[p] > top ? a.weights[p] : top;
    }
    for (Int p = 0; p < l.places; p++) all += a.weights[p] = a.mask[p] ? std::exp(a.weights[p] - top) : 0;
    for (Int p = 0; p < l.places; p++)  // without a real place all are equal
      a.weights[p] = top == -INFINITY && all == 0 ? 1.f / l.places : a.weights[p] / all;
    memset(a.context, 0, l.width * sizeof(float));
    for (Int p = 0; p < l.places; p++) {
      if (a.weights[p] == 0) continue;  // padding, which may hold anything
      const V weight = set(a.weights[p]);
      const float *value = a.values + p * l.values_place;
      registers(l.width, [&](Int d, auto m) {
        store(a.context + d, m, fma(weight, load(value + d, m), load(a.context + d, m)));
      });
    }
  }
}

inline void look_back(const Look &l, Int s) {
  float *room = l.room + s * (l.size + l.places), *dweight = l.dweight + s * l.size;
  for (Int b = l.sources * s / l.slabs; b < l.sources * (s + 1) / l.slabs; b++)
    for (Int n = b * l.queries; n < (b + 1) * l.queries; n++) {
      const Asked a(l, n, room);
      float *given = room + l.size, *dquery = l.dquery + n * l.size, mean = 0;
      for (Int p = 0; p < l.places; p++) {
        if (a.weights[p] == 0) continue;
        V sum = set(0.f);
        const float *value = a.values + p * l.values_place;
        registers(l.width, [&](Int d, auto m) { sum = fma(load(value + d, m), load(a.context + d, m), sum); });
        given[p] = total(sum), mean += a.weights[p] * given[p];
      }
      for (Int p = 0; p < l.places; p++) {
        if (!a.mask[p] || a.weights[p] == 0) continue;
        const V g = set(a.weights[p] * (given[p] - mean));
        float *dkey = l.dkeys + (b * l.places + p) * l.size;
        a.units(p, [&](Int u, auto m, V t, V slope) {
          const V d = mul(mul(g, load(l.weight + u, m)), slope);
          store(dweight + u, m, fma(g, t, load(dweight + u, m)));
          store(dquery + u, m, add(load(dquery + u, m), d));
          store(dkey + u, m, add(load(dkey + u, m), d));
        });
      }
    }
}

}  // namespace

API Int weft_energies_version() { return 5; }  // version of the structs above; must equal VERSIONS in jobs.py
API void weft_energies(const Energies *work, Start start) { run<Energies, forward>(work, start); }
API void weft_energies_back(const Energies *work, Start start) { run<Energies, backward>(work, start); }
API void weft_look(const Look *work, Start start) { run<Look, look>(work, start); }
API void weft_look_back(const Look *work, Start start) { run<Look, look_back>(work, start); }
