// All layers of a Transformer decoder for one position of each hypothesis, or of an encoder for whole texts.
//
// A step has about thirty small products and twice as many smaller operations; called one by one, the calls cost more
// than the work. Here a row stays in the L1 cache from its first norm to its last. A hypothesis reads only the entries
// of its own path in its source's cache (nn/cache.py), so attention costs as much as the hypothesis is long, not as
// much as its whole beam wrote. Sources are independent: each thread takes a slab of them.
#pragma once

#include "dense.h"
#include "equations.h"

enum Activation { RELU, GELU, GELU_TANH, SILU, SWIGLU };

struct Norm { const float *gain, *shift; };   // [D] each, or NULL

struct Layer {
  Norm attention_norm, cross_norm, network_norm;
  Dense query, key_value, out, cross_query, cross_out, first, second;
  void *cache;                // [B, 2, H, >= E + W, K], float32, or bfloat16 if the kind is not FLOAT
  const void *keys, *values;  // [B, H, S, K] with the strides below, or NULL for no source; as the cache
  Int cache_source, cache_side, cache_head, keys_source, keys_head, keys_place, values_source, values_head, values_place;
  float *carry;               // [2, B, W, D]: states of an SSRU in place of self-attention, whose weights are `query`; or NULL
};

struct Decode {
  Int layers, rows, sources, size, heads, inner, entries, positions, places, slabs;
  Int before, root, activation;  // before: norms before the sublayers; root: RMSNorm
  double epsilon;
  const Layer *each;
  Norm last;                  // gain is NULL without a last norm
  const Int *path;            // [N, P], the entries of each hypothesis, the new one last; NULL: entries are positions
  const unsigned char *mask;  // [B, S], 0 = padding; or NULL
  float *x;                   // [N, D]: input, overwritten by the result
  float *room;                // buffer [N, D + max(3 D, inner or twice that)], followed by [slabs, max(P, S)]
  Int halves;                 // 16-bit elements of a slab of `cut`
  unsigned short *cut;        // [slabs, halves]: buffer for rows split for the tiles or rounded; or NULL
  Int kind;
  Int whole;  // encoder: the rows of a source are its positions, and each attends to all of them; no cache
  Int path_row;        // numbers between the paths of two hypotheses
  const Int *numbers;  // [sources], the number of each source in cache, source, mask and path; NULL: 0, 1, ..
  const Int *parents;  // for `carry`: [N] the slot of each row's hypothesis one step before
  Int side, beam, all;  // for `carry`: the half that this step writes; W; and B
  Int number(Int b) const { return numbers ? numbers[b] : b; }
};

namespace {

// The error function by Abramowitz & Stegun 7.1.26, absolute error up to 1.5e-7.
inline V error(V x) {
  V z = without_sign(x), t = div(set(1.f), fma(set(0.3275911f), z, set(1.f)));
  V p = fma(set(1.061405429f), t, set(-1.453152027f));
  p = fma(p, t, set(1.421413741f));
  p = fma(p, t, set(-0.284496736f));
  p = fma(p, t, set(0.254829592f));
  return with_sign(fnma(mul(p, t), power(sub(set(0.f), mul(z, z))), set(1.f)), x);
}

template <int KIND> inline V activated(V x) {
  if constexpr (KIND == RELU) return most(set(0.f), x);
  if constexpr (KIND == GELU) return mul(mul(set(.5f), x), add(set(1.f), error(mul(x, set(.70710678f)))));
  if constexpr (KIND == GELU_TANH) {
    V inner = mul(set(.79788456f), fma(mul(set(.044715f), mul(x, x)), x, x));
    return mul(mul(set(.5f), x), add(set(1.f), tangent(inner)));
  }
  return mul(x, sigmoid(x));
}

void norm(const Decode &d, const Norm &by, Int n, const float *x, float *y) {
  const Int D = d.size;
  for (Int r = 0; r < n; r++, x += D, y += D) {
    V sum = set(0.f), square = set(0.f);
    if (!d.root)
      for (Int u = 0; u < D; u += W) sum = add(sum, load(x + u, lanes(D - u)));
    const V mean = set(total(sum) / D);
    for (Int u = 0; u < D; u += W) {
      const M m = lanes(D - u);
      const V off = only(m, sub(load(x + u, m), mean));
      square = fma(off, off, square);
    }
    const V scale = set(1.f / std::sqrt(total(square) / D + (float)d.epsilon));
    for (Int u = 0; u < D; u += W) {
      M m = lanes(D - u);
      V z = mul(sub(load(x + u, m), mean), scale);
      if (by.gain) z = mul(z, load(by.gain + u, m));
      if (by.shift) z = add(z, load(by.shift + u, m));
      store(y + u, m, z);
    }
  }
}

// softmax(q K^T / sqrt(K)) V of one head of one row; a head has R registers.
template <int R, class T, class Place>
inline void head(const float *q, const T *keys, const T *values, Int count, Int size, Int key, Int value,
                 const Place &place, const unsigned char *mask, float *energy, float *out) {
  const float scale = 1.f / std::sqrt((float)size);
  M m[R];
  V mine[R], sum[R];
  for (int i = 0; i < R; i++) m[i] = lanes(size - i * W), mine[i] = load(q + i * W, m[i]), sum[i] = set(0.f);
  auto dot = [&](Int p) {
    const T *k = keys + place(p) * key;
    V sum = mul(mine[0], load(k, m[0]));
    for (int i = 1; i < R; i++) sum = fma(mine[i], load(k + i * W, m[i]), sum);
    return sum;
  };
  Int done = 0;
  for (; done + 4 <= count; done += 4)
    _mm_storeu_ps(energy + done, _mm_mul_ps(totals(dot(done), dot(done + 1), dot(done + 2), dot(done + 3)), _mm_set1_ps(scale)));
  for (; done < count; done++) energy[done] = total(dot(done)) * scale;
  for (Int p = 0; mask && p < count; p++) energy[p] = mask[p] ? energy[p] : -INFINITY;
  const V low = set(-INFINITY);
  V high = low, all = set(0.f);
  for (Int p = 0; p < count; p += W) high = most(load_or(energy + p, lanes(count - p), low), high);
  const float top = largest(high);
  const V peak = set(top == -INFINITY ? 0.f : top);
  for (Int p = 0; p < count; p += W) {
    const M there = lanes(count - p);
    const V share = power(sub(load(energy + p, there), peak));
    store(energy + p, there, share), all = add(all, only(there, share));
  }
  for (Int p = 0; p < count; p++) {
    const T *v = values + place(p) * value;
    V share = set(energy[p]);
    for (int i = 0; i < R; i++) sum[i] = fma(share, load(v + i * W, m[i]), sum[i]);
  }
  const V whole_share = set(1.f / total(all));
#pragma GCC unroll 8  // as in narrow_multiply
  for (int i = 0; i < R; i++) store(out + i * W, m[i], mul(sum[i], whole_share));
}

template <int R, class T> void attend(const Decode &d, const Layer &l, bool cross, Int first, Int last, const float *q, float *energy, float *out) {
  const Int D = d.size, K = D / d.heads, beam = d.rows / d.sources;
  for (Int n = first; n < last; n++, q += D, out += D) {
    const Int b = d.number(n / beam);
    for (Int h = 0; h < d.heads; h++) {
      if (cross) {
        const T *k = (const T *)l.keys + b * l.keys_source + h * l.keys_head;
        const T *v = (const T *)l.values + b * l.values_source + h * l.values_head;
        head<R, T>(q + h * K, k, v, d.places, K, l.keys_place, l.values_place, [](Int p) { return p; },
                d.mask ? d.mask + b * d.places : nullptr, energy, out + h * K);
        continue;
      }
      const T *k = (const T *)l.cache + b * l.cache_source + h * l.cache_head, *v = k + l.cache_side;
      if (d.path) {
        const Int *path = d.path + (b * (d.numbers ? d.beam : beam) + n % beam) * d.path_row;
        head<R, T>(q + h * K, k, v, d.positions, K, K, K, [path](Int p) { return path[p]; }, nullptr, energy, out + h * K);
      } else {
        head<R, T>(q + h * K, k, v, d.positions, K, K, K, [](Int p) { return p; }, nullptr, energy, out + h * K);
      }
    }
  }
}

template <class T>
void attend(const Decode &d, const Layer &l, bool cross, Int first, Int last, const float *q, float *energy, float *out) {
  switch ((d.size / d.heads + W - 1) / W) {
#define HEAD(r) case r: return attend<r, T>(d, l, cross, first, last, q, energy, out);
    HEAD(1) HEAD(2) HEAD(3) HEAD(4) HEAD(5) HEAD(6) HEAD(7) HEAD(8)
#undef HEAD
  }
}

void attend(const Decode &d, const Layer &l, bool cross, Int first, Int last, const float *q, float *energy, float *out) {
#if defined(NARROW)
  if (d.kind) return attend<unsigned short>(d, l, cross, first, last, q, energy, out);
#endif
  attend<float>(d, l, cross, first, last, q, energy, out);
}

// The positions of each source attend to one another; their keys and values are side by side in made [n, 2 D].
void within(const Decode &d, Int first, Int last, const float *q, const float *made, float *energy, float *out) {
  const Int D = d.size, S = d.places;
  Layer l = {};
  l.keys_source = l.values_source = S * 2 * D, l.keys_place = l.values_place = 2 * D;
  l.keys_head = l.values_head = D / d.heads;
  l.keys = made - first * S * 2 * D, l.values = made - first * S * 2 * D + D;
  attend<float>(d, l, true, first * S, last * S, q, energy, out);
}

template <int KIND> void network(const Decode &d, const Layer &l, Int n, const float *a, float *h, const How &how) {
  if constexpr (KIND == SWIGLU) {
    const Int I = d.inner;
    dense(l.first, n, d.size, 2 * I, a, d.size, how, [&](Int r, Int u, M m, V y) { store(h + r * 2 * I + u, m, y); });
    for (Int r = 0; r < n; r++)
      for (Int u = 0; u < I; u += W) {
        float *gate = h + r * 2 * I + u;
        M m = lanes(I - u);
        store(gate, m, mul(activated<SILU>(load(gate, m)), load(gate + I, m)));
      }
  } else {
    dense(l.first, n, d.size, d.inner, a, d.size, how,
          [&](Int r, Int u, M m, V y) { store(h + r * d.inner + u, m, activated<KIND>(y)); });
  }
}

// Write the keys and values of n new entries, made [n, 2 D], into the cache.
inline void remember(const Decode &d, const Layer &l, Int first, Int n, const float *made) {
  const Int D = d.size, K = D / d.heads, beam = d.rows / d.sources;
  for (Int r = 0; r < n; r++)
    for (Int part = 0; part < 2 * d.heads; part++) {
      const Int row = first + r, side = part / d.heads, h = part % d.heads;
      const Int to = d.number(row / beam) * l.cache_source + side * l.cache_side + h * l.cache_head + (d.entries + row % beam) * K;
      const float *from = made + r * 2 * D + part * K;
#if defined(NARROW)
      if (d.kind) {
        for (Int u = 0; u < K; u += W) store((unsigned short *)l.cache + to + u, lanes(K - u), load(from + u, lanes(K - u)));
        continue;
      }
#endif
      memcpy((float *)l.cache + to, from, K * sizeof(float));
    }
}

// An SSRU: c = f c + (1 - f) c^, x + relu(c), with f and c^ from y [n, D]; `made` is a buffer [n, 2 D].
inline void recur(const Decode &d, const Layer &l, Int first, Int n, const float *y, float *made, const How &how) {
  const Int D = d.size, beam = d.rows / d.sources, half = d.side;
  const Int apart = d.all * d.beam * D;  // of the two halves
  dense(l.query, n, D, 2 * D, y, D, how, [&](Int r, Int u, M m, V v) { store(made + r * 2 * D + u, m, v); });
  for (Int r = 0; r < n; r++) {
    const Int row = first + r, slot = d.number(row / beam) * d.beam;
    const float *before = l.carry + (1 - half) * apart + (slot + d.parents[row]) * D, *gate = made + r * 2 * D;
    float *after = l.carry + half * apart + (slot + row % beam) * D, *x = d.x + row * D;
    for (Int u = 0; u < D; u += W) {
      const M m = lanes(D - u);
      const V c = mixed(sigmoid(load(gate + u, m)), load(before + u, m), load(gate + D + u, m));
      store(after + u, m, c);
      store(x + u, m, add(load(x + u, m), most(set(0.f), c)));
    }
  }
}

// All layers for the rows of sources `from` to `to`, in thread s.
inline void sources(const Decode &d, Int s, Int from, Int to) {
  const How how = {d.kind, d.cut ? d.cut + s * d.halves : nullptr};
  const Int D = d.size, beam = d.rows / d.sources, I = d.inner;
  const Int first = from * beam, last = to * beam, n = last - first;
  const Int high = d.activation == SWIGLU ? 2 * I : I, wide = 3 * D > high ? 3 * D : high;
  const Int longest = d.positions > d.places ? d.positions : d.places;
  float *x = d.x + first * D, *a = d.room + first * (D + wide), *b = a + n * D, *q = b, *attended = b + n * D;
  float *energy = d.room + d.rows * (D + wide) + s * longest;
  auto into = [&](const Norm &by) { return d.before ? (norm(d, by, n, x, a), a) : x; };
  auto added = [&](Int r, Int u, M m, V y) { store(x + r * D + u, m, add(load(x + r * D + u, m), y)); };
  auto after = [&](const Norm &by) { if (!d.before) norm(d, by, n, x, x); };
  auto kept = [&](Int r, Int u, M m, V y) { store(q + r * D + u, m, y); };
  for (Int j = 0; j < d.layers; j++) {
    const Layer &l = d.each[j];
    const float *y = into(l.attention_norm);
    if (l.carry) {
      recur(d, l, first, n, y, attended, how);
    } else {
      dense(l.query, n, D, D, y, D, how, kept);
      float *made = attended;  // keys and values of the new entries, [n, 2 D]
      dense(l.key_value, n, D, 2 * D, y, D, how, [&](Int r, Int u, M m, V v) { store(made + r * 2 * D + u, m, v); });
      if (d.whole) {
        within(d, from, to, q, made, energy, a);
      } else {
        remember(d, l, first, n, made);
        attend(d, l, false, first, last, q, energy, attended);
      }
      dense(l.out, n, D, D, d.whole ? a : attended, D, how, added);
    }
    after(l.attention_norm);
    if (l.keys) {
      dense(l.cross_query, n, D, D, into(l.cross_norm), D, how, kept);
      attend(d, l, true, first, last, q, energy, attended);
      dense(l.cross_out, n, D, D, attended, D, how, added);
      after(l.cross_norm);
    }
    y = into(l.network_norm);
    switch (d.activation) {
      case RELU: network<RELU>(d, l, n, y, b, how); break;
      case GELU: network<GELU>(d, l, n, y, b, how); break;
      case GELU_TANH: network<GELU_TANH>(d, l, n, y, b, how); break;
      case SILU: network<SILU>(d, l, n, y, b, how); break;
      case SWIGLU: network<SWIGLU>(d, l, n, y, b, how); break;
    }
    dense(l.second, n, I, D, b, high, how, added);
    after(l.network_norm);
  }
  if (d.last.gain) norm(d, d.last, n, x, x);
}

constexpr Int AT_ONCE = 96;  // rows of an encoder whose numbers stay in the L2 cache

inline void slab(const Decode &d, Int s) {
  const Tiled here(d.cut);
  const Int last = d.sources * (s + 1) / d.slabs, some = AT_ONCE / d.places, step = d.whole ? (some ? some : 1) : d.sources;
  for (Int from = d.sources * s / d.slabs; from < last; from += step) sources(d, s, from, from + step < last ? from + step : last);
}

}  // namespace

