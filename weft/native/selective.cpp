// Mamba's selective scan over all steps on the CPU, float32: h = exp(dt A) h + dt u B, y = C h (C13).
//
// A program holds the N states of W features in registers for CHUNK steps, so h is never written for all steps. The
// backward pass starts each chunk from its stored first state and computes the chunk's states again. Plain C interface,
// compiled like cells.cpp.
#include "softmax.h"

constexpr int CHUNK = 16, MOST = 64;  // steps between stored states; states of a feature

struct Selective {
  Int T, B, E, N, slabs, u_row, u_step, dt_row, dt_step, b_row, b_step, c_row, c_step;
  const Int *bounds;               // [slabs + 1]
  const float *u, *dt, *a, *b, *c; // [B, T, E], [B, T, E], [N, E], [B, T, N], [B, T, N]
  float *h;                        // [B, N, E]: in, the first state; out, the last
  float *kept;                     // [B, ceil(T / CHUNK), N, E], the state before each chunk, or NULL
  float *y;                        // [B, T, E]
};

struct SelectiveBack {
  Selective f;  // with kept
  Int slabs;
  const float *dy;        // [B, T, E]
  float *dh;              // [B, N, E]: in, gradient of the last state; out, of the first
  float *du, *ddt;        // [B, T, E]
  float *db, *dc;         // [B, T, N]
  float *da;              // [slabs, N, E], zeros at the start
};

namespace {

// N is 0 if it is known only at run time.
template <int N> void row_forward(const Selective &f, Int row) {
  const Int count = N ? N : f.N, E = f.E, chunks = (f.T + CHUNK - 1) / CHUNK;
  float *h = f.h + row * count * E;
  for (Int chunk = 0; chunk < chunks; chunk++) {
    const Int begin = chunk * CHUNK, end = begin + CHUNK < f.T ? begin + CHUNK : f.T;
    if (f.kept) memcpy(f.kept + (row * chunks + chunk) * count * E, h, count * E * sizeof(float));
    for (Int e = 0; e < E; e += W) {
      const M m = lanes(E - e);
      V held[N ? N : MOST];
      for (int n = 0; n < count; n++) held[n] = load(h + n * E + e, m);
      for (Int t = begin; t < end; t++) {
        const V dt = load(f.dt + row * f.dt_row + t * f.dt_step + e, m);
        const V entering = mul(dt, load(f.u + row * f.u_row + t * f.u_step + e, m));
        const float *b = f.b + row * f.b_row + t * f.b_step, *c = f.c + row * f.c_row + t * f.c_step;
        V y = set(0.f);
        for (int n = 0; n < count; n++) {
          held[n] = fma(power(mul(dt, load(f.a + n * E + e, m))), held[n], mul(entering, set(b[n])));
          y = fma(held[n], set(c[n]), y);
        }
        store(f.y + (row * f.T + t) * E + e, m, y);
      }
      for (int n = 0; n < count; n++) store(h + n * E + e, m, held[n]);
    }
  }
}

struct Room {  // of a chunk of W features
  float before[CHUNK + 1][MOST][W], kept[CHUNK][MOST][W], db[CHUNK][MOST][W], dc[CHUNK][MOST][W];
};

template <int N> void row_backward(const SelectiveBack &w, Int row, Int slab, Room &room) {
  const Selective &f = w.f;
  const Int count = N ? N : f.N, E = f.E, chunks = (f.T + CHUNK - 1) / CHUNK;
  const M all = lanes(W);
  float *dh = w.dh + row * count * E, *da = w.da + slab * count * E;
  for (Int chunk = chunks - 1; chunk >= 0; chunk--) {
    const Int begin = chunk * CHUNK, steps = (begin + CHUNK < f.T ? begin + CHUNK : f.T) - begin;
    const float *first = f.kept + (row * chunks + chunk) * count * E;
    memset(room.db, 0, steps * sizeof(room.db[0]));
    memset(room.dc, 0, steps * sizeof(room.dc[0]));
    for (Int e = 0; e < E; e += W) {
      const M m = lanes(E - e);
      for (int n = 0; n < count; n++) store(room.before[0][n], all, load(first + n * E + e, m));
      for (Int k = 0; k < steps; k++) {
        const Int t = begin + k;
        const V dt = load(f.dt + row * f.dt_row + t * f.dt_step + e, m);
        const V entering = mul(dt, load(f.u + row * f.u_row + t * f.u_step + e, m));
        const float *b = f.b + row * f.b_row + t * f.b_step;
        for (int n = 0; n < count; n++) {
          const V kept = power(mul(dt, load(f.a + n * E + e, m)));
          store(room.kept[k][n], all, kept);
          store(room.before[k + 1][n], all, fma(kept, whole(room.before[k][n]), mul(entering, set(b[n]))));
        }
      }
      for (Int k = steps - 1; k >= 0; k--) {
        const Int t = begin + k, at = (row * f.T + t) * E + e;
        const V dt = load(f.dt + row * f.dt_row + t * f.dt_step + e, m), dy = load(w.dy + at, m);
        const V u = load(f.u + row * f.u_row + t * f.u_step + e, m), entering = mul(dt, u);
        const float *b = f.b + row * f.b_row + t * f.b_step, *c = f.c + row * f.c_row + t * f.c_step;
        V by_entering = set(0.f), by_dt = set(0.f);
        for (int n = 0; n < count; n++) {
          const V kept = whole(room.kept[k][n]), d = fma(dy, set(c[n]), load(dh + n * E + e, m));
          float *db = room.db[k][n], *dc = room.dc[k][n];
          store(dc, all, fma(dy, whole(room.before[k + 1][n]), whole(dc)));
          store(db, all, fma(d, entering, whole(db)));
          by_entering = fma(d, set(b[n]), by_entering);
          const V back = mul(d, kept), by_power = mul(back, whole(room.before[k][n]));
          by_dt = fma(by_power, load(f.a + n * E + e, m), by_dt);
          store(da + n * E + e, m, fma(by_power, dt, load(da + n * E + e, m)));
          store(dh + n * E + e, m, back);
        }
        store(w.du + at, m, mul(dt, by_entering));
        store(w.ddt + at, m, fma(u, by_entering, by_dt));
      }
    }
    for (Int k = 0; k < steps; k++)
      for (int n = 0; n < count; n++) {
        w.db[(row * f.T + begin + k) * count + n] = total(whole(room.db[k][n]));
        w.dc[(row * f.T + begin + k) * count + n] = total(whole(room.dc[k][n]));
      }
  }
}

void slab(const Selective &f, Int s) {
  for (Int row = f.bounds[s]; row < f.bounds[s + 1]; row++) f.N == 16 ? row_forward<16>(f, row) : row_forward<0>(f, row);
}

void slab(const SelectiveBack &w, Int s) {
  static thread_local Room room;
  for (Int row = w.f.bounds[s]; row < w.f.bounds[s + 1]; row++)
    w.f.N == 16 ? row_backward<16>(w, row, s, room) : row_backward<0>(w, row, s, room);
}

}  // namespace

API Int weft_selective_version() { return 4; }  // version of the structs above; must equal VERSION in jobs.py
API void weft_selective_forward(const Selective *f, Start start) { run<Selective, slab>(f, start); }
API void weft_selective_backward(const SelectiveBack *w, Start start) { run<SelectiveBack, slab>(w, start); }
