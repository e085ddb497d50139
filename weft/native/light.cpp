// Recurrences without a matrix over all steps on the CPU, float32: minGRU, minLSTM, SSRU, SRU (C10).
//
// One product has computed the gates' inputs z for all steps. Gates and state are computed in one pass over z, so each
// number is read once. The backward pass recomputes the gates, which costs less than storing them. Units and rows
// are independent: each thread takes a slab of rows. Plain C interface, compiled like cells.cpp.
#include "equations.h"
#include "softmax.h"

enum Kind { MINGRU, MINLSTM, SSRU, SRU };

// z [B, T, G H] with its biases: u, candidate (MINGRU); f, i, candidate (MINLSTM); f, candidate (SSRU);
// candidate, f, r (SRU), whose highway input is `past`. z, past and c have strides for rows and steps.
struct Light {
  Int kind, T, B, H, slabs, z_row, z_step, past_row, past_step, c_row, c_step;
  const Int *bounds;          // [slabs + 1]
  const float *z, *past;      // past: only for SRU
  const float *peep;          // [2, H] for f and r of SRU, or NULL
  const unsigned char *mask;  // [B, T], 0 keeps the state and makes y zero; or NULL
  const float *first;         // [B, H], c_0
  float *c;                   // c_1 .. c_T, or only c_T if c_step is 0
  float *y;                   // [B, T, H], or NULL if y equals c
};

struct LightBack {
  Light f;  // with c for all steps
  Int slabs, dz_row, dz_step, dpast_row, dpast_step;
  const float *dy;    // [B, T, H] or NULL
  float *dc;          // [B, H]: in, gradient of c_T; out, gradient of c_0
  float *dz, *dpast;  // with their strides
  float *dpeep;       // [slabs, 2, H], zeros at the start
};

namespace {

struct Gates { V keep, candidate, out; };  // f (or u), c^, r

template <int KIND> inline Gates gates(const Light &f, const float *z, V before, Int u, M m) {
  Gates g;
  const Int H = f.H;
  if constexpr (KIND == SRU) {
    g.candidate = load(z, m);
    V a = load(z + H, m), r = load(z + 2 * H, m);
    if (f.peep) a = fma(before, load(f.peep + u, m), a), r = fma(before, load(f.peep + H + u, m), r);
    g.keep = sigmoid(a), g.out = sigmoid(r);
  } else if constexpr (KIND == MINLSTM) {
    // s(a) / (s(a) + s(i)) = (1 + e^-i) / (2 + e^-a + e^-i), both times e^least so that no exponent is above 0.
    const V a = load(z, m), i = load(z + H, m), lowest = least(a, least(i, set(0.f)));
    const V both = power(lowest), by_i = add(both, power(sub(lowest, i)));
    g.keep = div(by_i, add(by_i, add(both, power(sub(lowest, a))))), g.candidate = load(z + 2 * H, m);
  } else {
    g.keep = sigmoid(load(z, m)), g.candidate = load(z + H, m);
  }
  return g;
}

template <int KIND> void row_forward(const Light &f, Int b) {
  const Int H = f.H;
  for (Int t = 0; t < f.T; t++) {
    const float *z = f.z + b * f.z_row + t * f.z_step, *past = f.past + (KIND == SRU ? b * f.past_row + t * f.past_step : 0);
    const float *before = t ? f.c + b * f.c_row + (t - 1) * f.c_step : f.first + b * H;
    float *c = f.c + b * f.c_row + t * f.c_step, *y = f.y ? f.y + (b * f.T + t) * H : nullptr;
    if (f.mask && !f.mask[b * f.T + t]) {
      if (c != before) memcpy(c, before, H * sizeof(float));
      if (y) memset(y, 0, H * sizeof(float));
      continue;
    }
    for (Int u = 0; u < H; u += W) {
      const M m = lanes(H - u);
      V held = load(before + u, m);
      Gates g = gates<KIND>(f, z + u, held, u, m);
      V now = mixed(g.keep, held, g.candidate);
      store(c + u, m, now);
      if constexpr (KIND == SRU) {
        V carried = load(past + u, m);
        now = mixed(g.out, now, carried);
      }
      if constexpr (KIND == SSRU) now = most(set(0.f), now);
      if (y) store(y + u, m, now);
    }
  }
}

template <int KIND> void row_backward(const LightBack &w, Int b, Int slab) {
  const Light &f = w.f;
  const Int H = f.H;
  const V one = set(1.f);
  float *dc = w.dc + b * H;
  for (Int t = f.T - 1; t >= 0; t--) {
    const float *z = f.z + b * f.z_row + t * f.z_step;
    const float *before = t ? f.c + b * f.c_row + (t - 1) * f.c_step : f.first + b * H;
    const float *c = f.c + b * f.c_row + t * f.c_step, *dy = w.dy ? w.dy + (b * f.T + t) * H : nullptr;
    float *dz = w.dz + b * w.dz_row + t * w.dz_step;
    const float *past = f.past + (KIND == SRU ? b * f.past_row + t * f.past_step : 0);
    float *dpast = w.dpast + (KIND == SRU ? b * w.dpast_row + t * w.dpast_step : 0);
    if (f.mask && !f.mask[b * f.T + t]) {
      memset(dz, 0, (KIND == SRU || KIND == MINLSTM ? 3 : 2) * H * sizeof(float));
      if (KIND == SRU) memset(dpast, 0, H * sizeof(float));
      continue;
    }
    for (Int u = 0; u < H; u += W) {
      const M m = lanes(H - u);
      V held = load(before + u, m), by_y = dy ? load(dy + u, m) : set(0.f), by_c = load(dc + u, m);
      Gates g = gates<KIND>(f, z + u, held, u, m);
      V dr;
      if constexpr (KIND == SRU) {
        V carried = load(past + u, m);
        dr = mul(mul(by_y, sub(load(c + u, m), carried)), slope_sigmoid(g.out));
        by_c = fma(by_y, g.out, by_c);
        store(dpast + u, m, mul(by_y, sub(one, g.out)));
      } else if constexpr (KIND == SSRU) {
        by_c = add(by_c, positive(load(c + u, m), by_y));
      } else {
        by_c = add(by_c, by_y);
      }
      V by_keep = mul(by_c, sub(held, g.candidate)), by_candidate = mul(by_c, sub(one, g.keep));
      V back = mul(by_c, g.keep);
      if constexpr (KIND == MINLSTM) {  // keep = s(log s(a) - log s(i)), and log s has the slope s(-x)
        const V zero = set(0.f), by_odds = mul(by_keep, slope_sigmoid(g.keep));
        store(dz + u, m, mul(by_odds, sigmoid(sub(zero, load(z + u, m)))));
        store(dz + H + u, m, mul(sub(zero, by_odds), sigmoid(sub(zero, load(z + H + u, m)))));
        store(dz + 2 * H + u, m, by_candidate);
      } else if constexpr (KIND == SRU) {
        V df = mul(by_keep, slope_sigmoid(g.keep));
        store(dz + u, m, by_candidate), store(dz + H + u, m, df), store(dz + 2 * H + u, m, dr);
        if (f.peep) {
          back = fma(df, load(f.peep + u, m), fma(dr, load(f.peep + H + u, m), back));
          float *p = w.dpeep + slab * 2 * H + u;
          store(p, m, fma(df, held, load(p, m))), store(p + H, m, fma(dr, held, load(p + H, m)));
        }
      } else {
        store(dz + u, m, mul(by_keep, slope_sigmoid(g.keep))), store(dz + H + u, m, by_candidate);
      }
      store(dc + u, m, back);
    }
  }
}

void slab(const Light &f, Int s) {
  for (Int b = f.bounds[s]; b < f.bounds[s + 1]; b++) switch (f.kind) {
      case MINGRU: row_forward<MINGRU>(f, b); break;
      case MINLSTM: row_forward<MINLSTM>(f, b); break;
      case SSRU: row_forward<SSRU>(f, b); break;
      case SRU: row_forward<SRU>(f, b); break;
    }
}

void slab(const LightBack &w, Int s) {
  for (Int b = w.f.bounds[s]; b < w.f.bounds[s + 1]; b++) switch (w.f.kind) {
      case MINGRU: row_backward<MINGRU>(w, b, s); break;
      case MINLSTM: row_backward<MINLSTM>(w, b, s); break;
      case SSRU: row_backward<SSRU>(w, b, s); break;
      case SRU: row_backward<SRU>(w, b, s); break;
    }
}

}  // namespace

API Int weft_light_version() { return 4; }  // version of the structs above; must equal VERSION in jobs.py
API void weft_light_forward(const Light *f, Start start) { run<Light, slab>(f, start); }
API void weft_light_backward(const LightBack *w, Start start) { run<LightBack, slab>(w, start); }
