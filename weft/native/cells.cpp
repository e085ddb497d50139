// Recurrent cells over all time steps on the CPU, forward and backward, in float32.
//
// A step multiplies the state by weights that were packed into panels, one panel for the gates of 16 units
// (8 with AVX2), and applies the gates to the sums while they are in registers. Rows of the batch are independent,
// so each thread takes a slab of rows through all steps without waiting for the others. Rows are sorted by
// length: `active` is the number of unfinished rows of a slab at each step; finished rows cost nothing.
//
// Plain C interface, loaded by ctypes (__init__.py), without torch or Python headers. This file is compiled for
// AVX2, AVX-512 and AMX (build.py), and the loader takes the best one that the processor supports.
//
// With tiles (tiles.h) the state of all rows is split once per step, and the sums pass through the L1 cache. With bfloat16
// (narrow.h) it is rounded once per step, and two products are added at a time. For few rows and steps, weights are read as
// they are: packing them would take longer than the products.

#include "equations.h"
#include "narrow.h"
#include "panels.h"
#include "tiles.h"

namespace {

enum Cell { LSTM, PEEPHOLE, COUPLED, GRU, ELMAN, RELU };
constexpr int gates(int cell) { return cell <= PEEPHOLE ? 4 : cell <= GRU ? 3 : 1; }
// How weights are stored: in panels, in panels of words of two bfloat16, or as they are.
enum Stored { PANELS, WORDS, PLAIN_ROWS };

}  // namespace

// Gates are stacked i, f, candidate, o (LSTM, PEEPHOLE); f, candidate, o (COUPLED); r, u, candidate (GRU).
struct Forward {
  Int cell, T, B, H, I, slabs, training, x_row, x_step;
  const Int *bounds;    // [slabs + 1] rows of each slab
  const Int *active;    // [slabs, T] number of unfinished rows of the slab
  const float *x;        // [B, T, I] with strides x_row, x_step; NULL if W_x x + b is already in `gates`
  const float *panel_x;  // packed W_x
  const float *panel_h;  // packed W_h
  const float *bias;     // [G H], added only if x is multiplied here
  const float *bias_n;   // [H], GRU's inner bias
  const float *peephole; // [3, H] for i, f, o
  float *gates;          // [T, B, G H]: in, W_x x + b; out, in training, the activations; or NULL
  float *inner;          // [T, B, H] GRU in training: W_h h + b_n of the candidate
  float *h;              // [T + 1, B, H], starting with the initial state
  float *c;              // [T + 1, B, H] in training; else [B, H], updated in place
  Int halves;            // 16-bit elements of a slab's buffer: packed_size(its rows, H) for tiles, its rows in words of H for
                         // WORDS, 2 FEW rows of G H floats for PLAIN_ROWS
  unsigned short *room;  // [slabs, halves]; NULL for PANELS
};

struct Backward {
  Int cell, T, B, H, slabs;
  const Int *bounds, *active;
  const float *panel;    // packed W_h for the backward pass
  const float *gates, *inner, *h, *c, *peephole;
  const float *dy;       // [T, B, H] or NULL
  const float *dh_last;  // [B, H] or NULL
  float *dc;             // [B, H]: in, gradient of the last c; out, gradient of the initial c
  float *dh;             // [B, H]: gradient of the initial h; or NULL
  float *carry;          // [B, H] GRU: buffer for u dh
  float *d;              // [T, B, G H] gradients of the pre-activations; GRU [T, B, 4 H]: candidate's W_x side,
                         // r, u, candidate's W_h side
  float *dpeephole;      // [slabs, 3, H], zeros at the start
  Int halves;            // 16-bit elements of a slab's buffer: packed_size(its rows, G H), or its rows in words of G H
  unsigned short *room;  // [slabs, halves]; NULL for PANELS and PLAIN_ROWS
};

namespace {

template <int STORED> INLINE Int depth(Int K) { return STORED == WORDS ? (K + 1) / 2 : K; }

#if defined(NARROW)
// As `product`, of rows and weights in words of two bfloat16.
template <int MR, int NV>
INLINE void word_product(V (&acc)[MR][NV], const unsigned *a, Int lda, const unsigned *panel, Int words) {
  Int k = 0;
  if constexpr (MR * NV <= 8) {
    constexpr int S = MR * NV <= 4 ? 4 : 2;
    V part[S][MR][NV];
    for (int s = 0; s < S; s++)
      for (int r = 0; r < MR; r++)
        for (int v = 0; v < NV; v++) part[s][r][v] = set(0.f);
    for (; k + S <= words; k += S)
      for (int s = 0; s < S; s++)
        for (int r = 0; r < MR; r++)
          for (int v = 0; v < NV; v++)
            part[s][r][v] = times<HALF>(part[s][r][v], a + r * lda + k + s, panel + ((k + s) * NV + v) * W);
    for (int s = 0; s < S; s++)
      for (int r = 0; r < MR; r++)
        for (int v = 0; v < NV; v++) acc[r][v] = add(acc[r][v], part[s][r][v]);
  }
  for (; k < words; k++)
    for (int r = 0; r < MR; r++)
      for (int v = 0; v < NV; v++) acc[r][v] = times<HALF>(acc[r][v], a + r * lda + k, panel + (k * NV + v) * W);
}
#endif

template <int STORED, int MR, int NV>
INLINE void add_product(V (&acc)[MR][NV], const float *a, Int lda, const float *panel, Int K) {
#if defined(NARROW)
  if constexpr (STORED == WORDS) return word_product<MR, NV>(acc, (const unsigned *)a, lda, (const unsigned *)panel, depth<WORDS>(K));
#endif
  product<MR, NV>(acc, a, lda, panel, K);
}

// Rows that a step multiplies: numbers as they are, or rounded into the slab's buffer.
struct Rows { const float *first; Int apart; };
template <int STORED> inline Rows rows_of(const float *a, Int lda, Int n, Int K, unsigned short *buffer) {
#if defined(NARROW)
  if constexpr (STORED == WORDS) {
    narrow_rows(HALF, a, lda, n, K, (unsigned *)buffer);
    return {(const float *)buffer, row_words(HALF, K)};
  }
#endif
  return {a, lda};
}

// Compute the next state from the pre-activations [rows, NV]. NV is the number of gates or, for cells with one gate,
// of registers of units. GRU: xn [rows] is the candidate's W_x x + b; its entry in the sums is W_h h + b_n.
template <int CELL, int rows>
INLINE void finish_forward(const Forward &f, Int t, Int row, Int u, int registers, const V *sums, const V *xn) {
  constexpr bool plain = CELL >= ELMAN;  // a register is a block of units, not a gate
  const int NV = plain ? registers : gates(CELL);
  const Int H = f.H, at = t * f.B + row, next = f.training ? f.B * H : 0, GH = gates(CELL) * H;
  const float *h = f.h + at * H;
  float *y = f.h + (at + f.B) * H, *kept = f.gates ? f.gates + at * GH : nullptr;
  const M here = lanes(H - u);
  for (int r = 0; r < rows; r++, sums += NV) {
    float *out = y + r * H + u, *save = kept + r * GH + u;
    if constexpr (plain) {
      for (int v = 0; v < NV; v++)
        store(out + v * W, lanes(H - u - v * W), CELL == ELMAN ? tangent(sums[v]) : most(set(0.f), sums[v]));
    } else if constexpr (CELL == GRU) {
      const GRUStep now = gru(sums[0], sums[1], xn[r], sums[2], load(h + r * H + u, here));
      store(out, here, now.h);
      if (f.training) {
        store(save, here, now.r), store(save + H, here, now.u), store(save + 2 * H, here, now.candidate);
        store(f.inner + (at + r) * H + u, here, sums[2]);
      }
    } else {
      float *cell = f.c + (f.training ? at + r : row + r) * H + u;
      const V c = load(cell, here);
      LSTMStep now;
      if constexpr (CELL == COUPLED) now = coupled(sums[0], sums[1], sums[2], c);
      else if constexpr (CELL == LSTM) now = lstm(sums[0], sums[1], sums[2], sums[3], c);
      else now = lstm(sums[0], sums[1], sums[2], sums[3], c, f.peephole + u, H, here);
      store(cell + next, here, now.c);
      store(out, here, now.h);
      if (f.training) {
        if constexpr (CELL != COUPLED) store(save, here, now.i), save += H;
        store(save, here, now.f), store(save + H, here, now.candidate), store(save + 2 * H, here, now.o);
      }
    }
  }
}

// The pre-activations of MR rows and NV registers, for any cell. PLAIN: registers of units, W apart; else gates of
// the same units, H apart (H may equal W). xn: the W_x side of GRU's candidate, else NULL.
// state: the rows' h.
template <int STORED, int NV, int MR, bool PLAIN>
INLINE void sums_forward(const Forward &f, Int t, Int row, Rows state, Int u, Int GH, const float *ph, const float *px, V *sums, V *xn) {
  const Int H = f.H, at = t * f.B + row, apart = PLAIN ? W : H, step = PLAIN ? W : 0;
  V acc[MR][NV];
  for (int r = 0; r < MR; r++)
    for (int v = 0; v < NV; v++)
      acc[r][v] = load((f.x ? f.bias : f.gates + (at + r) * GH) + u + v * apart, lanes(H - u - v * step));
  if (f.x) add_product<STORED, MR, NV>(acc, f.x + row * f.x_row + t * f.x_step, f.x_row, px, f.I);
  if constexpr (NV == 3)
    if (xn)
      for (int r = 0; r < MR; r++) {
        xn[r] = acc[r][2];
        acc[r][2] = load(f.bias_n + u, lanes(H - u));
      }
  add_product<STORED, MR, NV>(acc, state.first, state.apart, ph, H);
  for (int r = 0; r < MR; r++)
    for (int v = 0; v < NV; v++) sums[r * NV + v] = acc[r][v];
}

template <int STORED, int NV, int MR>
NOINLINE void sums_of_units(const Forward &f, Int t, Int row, Rows state, Int u, const float *ph, const float *px, V *sums) {
  sums_forward<STORED, NV, MR, true>(f, t, row, state, u, f.H, ph, px, sums, nullptr);
}

template <int CELL, int STORED, int NV>
inline void block_forward(const Forward &f, Int t, Int first, Int last, Rows states, Int u, Int offset) {
  const float *ph = f.panel_h + offset * depth<STORED>(f.H), *px = f.panel_x + (f.x ? offset * depth<STORED>(f.I) : 0);
  tiles<max_rows(NV)>(first, last, [&](auto height, Int row) {
    constexpr int MR = decltype(height)::value;
    const Rows state{states.first + (row - first) * states.apart, states.apart};
    V sums[MR * NV], xn[MR];
    if constexpr (CELL >= ELMAN)  // one instantiation for both
      sums_of_units<STORED, NV, MR>(f, t, row, state, u, ph, px, sums);
    else  // inlined per cell, so gates stay in registers: one shared instantiation was 4 % slower with 128 units
      sums_forward<STORED, NV, MR, false>(f, t, row, state, u, gates(CELL) * f.H, ph, px, sums, CELL == GRU ? xn : nullptr);
    finish_forward<CELL, MR>(f, t, row, u, NV, sums, xn);
  });
}

template <int CELL, int STORED> void slab_forward(const Forward &f, Int slab) {
  const Int first = f.bounds[slab], registers = (f.H + W - 1) / W;
  const Blocks blocks(f.H);
  for (Int t = 0; t < f.T; t++) {
    const Int last = first + f.active[slab * f.T + t], n = CELL >= ELMAN ? blocks.count : registers;
    const Rows states = rows_of<STORED>(f.h + (t * f.B + first) * f.H, f.H, last - first, f.H, f.room + slab * f.halves);
    for (Int i = 0; i < n; i++) {
      const Int j = t & 1 ? n - 1 - i : i;  // back and forth: the panels used last are still in the cache
      if constexpr (CELL < ELMAN) {
        constexpr int NV = gates(CELL);
        block_forward<CELL, STORED, NV>(f, t, first, last, states, j * W, j * NV * W);
      } else {
        const Int at = blocks.first(j) * W;
        switch (blocks.first(j + 1) - blocks.first(j)) {
          case 1: block_forward<CELL, STORED, 1>(f, t, first, last, states, at, at); break;
          case 2: block_forward<CELL, STORED, 2>(f, t, first, last, states, at, at); break;
          case 3: block_forward<CELL, STORED, 3>(f, t, first, last, states, at, at); break;
          case 4: block_forward<CELL, STORED, 4>(f, t, first, last, states, at, at); break;
        }
      }
    }
  }
}

// sums [MR, O] (rows `apart`) = a [MR, K] times the rows of w [O, K]
template <int MR> NOINLINE void dots(const float *a, Int lda, const float *w, Int O, Int K, float *sums, Int apart) {
  constexpr int N = 4;  // outputs at a time
  Int o = 0;
  auto some = [&](auto count) {
    constexpr int n = decltype(count)::value;
    V acc[n][MR];
    for (int i = 0; i < n; i++)
      for (int r = 0; r < MR; r++) acc[i][r] = set(0.f);
    for (Int k = 0; k < K; k += W) {
      const M m = lanes(K - k);
      V x[MR];
      for (int r = 0; r < MR; r++) x[r] = load(a + r * lda + k, m);
      for (int i = 0; i < n; i++) {
        const V y = load(w + (o + i) * K + k, m);
        for (int r = 0; r < MR; r++) acc[i][r] = fma(x[r], y, acc[i][r]);
      }
    }
#pragma GCC unroll 4  // as in narrow_multiply
    for (int i = 0; i < n; i++)
      for (int r = 0; r < MR; r++) sums[r * apart + o + i] = total(acc[i][r]);
    o += n;
  };
  while (o + N <= O) some(std::integral_constant<int, N>());
  while (o < O) some(std::integral_constant<int, 1>());
}

// With weights as they are; `room` holds the products with x and with h of the rows of a tile.
constexpr int FEW = 4;
template <int CELL> void slab_forward_plain(const Forward &f, Int slab) {
  constexpr int G = gates(CELL);
  const Int first = f.bounds[slab], H = f.H, GH = G * H;
  float *of_x = (float *)(f.room + slab * f.halves), *of_h = of_x + FEW * GH;
  for (Int t = 0; t < f.T; t++)
    tiles<FEW>(first, first + f.active[slab * f.T + t], [&](auto height, Int row) {
      constexpr int MR = decltype(height)::value;
      dots<MR>(f.x + row * f.x_row + t * f.x_step, f.x_row, f.panel_x, GH, f.I, of_x, GH);
      dots<MR>(f.h + (t * f.B + row) * H, H, f.panel_h, GH, H, of_h, GH);
      for (Int r = 0; r < MR; r++)
        for (Int u = 0; u < H; u += W) {
          const M m = lanes(H - u);
          V acc[G], xn[1];
          for (int g = 0; g < G; g++) {
            const Int at = g * H + u;
            const V x = add(load(of_x + r * GH + at, m), load(f.bias + at, m)), h = load(of_h + r * GH + at, m);
            if (CELL == GRU && g == 2) xn[0] = x, acc[g] = add(h, load(f.bias_n + u, m));
            else acc[g] = add(x, h);
          }
          finish_forward<CELL, 1>(f, t, row + r, u, 1, acc, xn);
        }
    });
}

// One register of units of one row: gradients of the pre-activations from dh.
template <int CELL> inline void cell_backward(const Backward &f, Int at, Int row, Int slab, Int u, M m, V dh) {
  const Int H = f.H, GH = gates(CELL) * H, o = at * H + u, next = o + f.B * H;
  float *d = f.d + at * (CELL == GRU ? 4 * H : GH) + u;
  const float *a = f.gates + at * GH + u;
  const V one = set(1.f);
  if constexpr (CELL == ELMAN) {
    store(d, m, mul(dh, slope_tangent(load(f.h + next, m))));
  } else if constexpr (CELL == RELU) {
    store(d, m, positive(load(f.h + next, m), dh));
  } else if constexpr (CELL == GRU) {
    V R = load(a, m), U = load(a + H, m), N = load(a + 2 * H, m), Q = load(f.inner + o, m), h = load(f.h + o, m);
    V dn = mul(mul(dh, sub(one, U)), slope_tangent(N));
    store(d, m, dn);
    store(d + H, m, mul(mul(dn, Q), slope_sigmoid(R)));
    store(d + 2 * H, m, mul(mul(dh, sub(h, N)), slope_sigmoid(U)));
    store(d + 3 * H, m, mul(dn, R));
    store(f.carry + row * H + u, m, mul(dh, U));
  } else {
    float *carry = f.dc + row * H + u;
    V c = load(f.c + next, m), before = load(f.c + o, m), tc = tangent(c), dc = load(carry, m);
    if constexpr (CELL == COUPLED) {
      V F = load(a, m), G = load(a + H, m), O = load(a + 2 * H, m);
      dc = fma(mul(dh, O), slope_tangent(tc), dc);
      store(d, m, mul(mul(dc, sub(before, G)), slope_sigmoid(F)));
      store(d + H, m, mul(mul(dc, sub(one, F)), slope_tangent(G)));
      store(d + 2 * H, m, mul(mul(dh, tc), slope_sigmoid(O)));
      store(carry, m, mul(dc, F));
    } else {
      V I = load(a, m), F = load(a + H, m), G = load(a + 2 * H, m), O = load(a + 3 * H, m);
      V dO = mul(mul(dh, tc), slope_sigmoid(O));
      dc = fma(mul(dh, O), slope_tangent(tc), dc);
      const float *p = f.peephole + u;
      if constexpr (CELL == PEEPHOLE) dc = fma(dO, load(p + 2 * H, m), dc);
      V dI = mul(mul(dc, G), slope_sigmoid(I)), dF = mul(mul(dc, before), slope_sigmoid(F));
      store(d, m, dI), store(d + H, m, dF), store(d + 3 * H, m, dO);
      store(d + 2 * H, m, mul(mul(dc, I), slope_tangent(G)));
      V rest = mul(dc, F);
      if constexpr (CELL == PEEPHOLE) {
        rest = fma(dF, load(p + H, m), fma(dI, load(p, m), rest));
        float *g = f.dpeephole + slab * 3 * H + u;
        store(g, m, fma(dI, before, load(g, m)));
        store(g + H, m, fma(dF, before, load(g + H, m)));
        store(g + 2 * H, m, fma(dO, c, load(g + 2 * H, m)));
      }
      store(carry, m, rest);
    }
  }
}

// Gradients of the pre-activations from those of the states, to which dy is still to be added.
template <int CELL>
void finish_backward(const Backward &f, Int t, Int row, Int slab, Int u, int rows, int NV, const V *sums) {
  const Int H = f.H;
  for (int r = 0; r < rows; r++)
    for (int v = 0; v < NV; v++) {
      const Int at = t * f.B + row + r, x = u + v * W;
      const M m = lanes(H - x);
      const V sum = sums[r * NV + v];
      if (t < 0)
        store(f.dh + (row + r) * H + x, m, sum);
      else
        cell_backward<CELL>(f, at, row + r, slab, x, m, f.dy ? add(sum, load(f.dy + at * H + x, m)) : sum);
    }
}

// Gradient that the states of MR rows receive from the next step, for any cell. `from` is added, unless NULL.
// d: gradients of the next step's pre-activations, of the first row; none at the last step of the rows.
template <int STORED, int NV, int MR>
NOINLINE void sums_backward(const Backward &f, Int row, Int u, const float *from, Rows d, Int K, V *sums) {
  const Int H = f.H;
  V acc[MR][NV];
  for (int r = 0; r < MR; r++)
    for (int v = 0; v < NV; v++)
      acc[r][v] = from ? load(from + (row + r) * H + u + v * W, lanes(H - u - v * W)) : set(0.f);
  if (d.first) {
    if constexpr (STORED == PLAIN_ROWS) {
      for (Int k = 0; k < K; k++)
        for (int v = 0; v < NV; v++) {
          const V y = load(f.panel + k * H + u + v * W, lanes(H - u - v * W));
          for (int r = 0; r < MR; r++) acc[r][v] = fma(set(d.first[r * d.apart + k]), y, acc[r][v]);
        }
    } else {
      add_product<STORED, MR, NV>(acc, d.first, d.apart, f.panel + u * depth<STORED>(K), K);
    }
  }
#pragma GCC unroll 8  // as in narrow_multiply
  for (int r = 0; r < MR; r++)
    for (int v = 0; v < NV; v++) sums[r * NV + v] = acc[r][v];
}

template <int CELL, int STORED, int NV, int MR>
inline void tile_backward(const Backward &f, Int t, Int row, Int slab, Int u, Rows d) {
  // without d, this is the last step of the row
  const float *from = d.first ? CELL == GRU ? f.carry : nullptr : f.dh_last;
  V sums[MR * NV];
  sums_backward<STORED, NV, MR>(f, row, u, from, d, gates(CELL) * f.H, sums);
  finish_backward<CELL>(f, t, row, slab, u, MR, NV, sums);
}

template <int CELL, int STORED, int NV>
inline void block_backward(const Backward &f, Int t, Int first, Int last, Int slab, Int u, Rows d) {
  tiles<max_rows(NV)>(first, last, [&](auto height, Int row) {
    const Rows own{d.first ? d.first + (row - first) * d.apart : nullptr, d.apart};
    tile_backward<CELL, STORED, NV, decltype(height)::value>(f, t, row, slab, u, own);
  });
}

template <int CELL, int STORED> void slab_backward(const Backward &f, Int slab) {
  const Int first = f.bounds[slab], rows = f.bounds[slab + 1] - first, *active = f.active + slab * f.T;
  const Int K = gates(CELL) * f.H, D = CELL == GRU ? 4 * f.H : K;
  const Blocks blocks(f.H);
  for (Int t = f.T - 1; t >= (f.dh ? -1 : 0); t--) {
    const Int begun = first + (t + 1 < f.T ? active[t + 1] : 0), last = first + (t < 0 ? rows : active[t]);
    Rows d{nullptr, 0};
    if (begun > first)
      d = rows_of<STORED>(f.d + ((t + 1) * f.B + first) * D + (CELL == GRU ? f.H : 0), D, begun - first, K, f.room + slab * f.halves);
    for (Int i = 0; i < blocks.count; i++) {
      const Int j = t & 1 ? blocks.count - 1 - i : i, u = blocks.first(j) * W;
      switch (blocks.first(j + 1) - blocks.first(j)) {
#define BLOCK(n) case n: block_backward<CELL, STORED, n>(f, t, first, begun, slab, u, d); \
                         block_backward<CELL, STORED, n>(f, t, begun, last, slab, u, {nullptr, 0}); break;
        BLOCK(1) BLOCK(2) BLOCK(3) BLOCK(4)
#undef BLOCK
      }
    }
  }
}

#if defined(__AMX_BF16__)
template <int CELL> void slab_forward_tiled(const Forward &f, Int slab) {
  constexpr int G = gates(CELL);
  const Tiles here;
  const Int first = f.bounds[slab], H = f.H;
  Half *room = f.room + slab * f.halves;
  for (Int t = 0; t < f.T; t++)
    tiled<G>(f.h + (t * f.B + first) * H, H, 1, H, f.active[slab * f.T + t], (const Half *)f.panel_h, H, t & 1, room,
             [&](Int r, Int u, const float *sums) {
               const M m = lanes(H - u);
               const float *kept = f.gates + (t * f.B + first + r) * G * H + u;
               V acc[G], xn[1];
               for (int g = 0; g < G; g++) {
                 _mm_prefetch((const char *)(kept + g * H + (t & 1 ? -32 : 32)), _MM_HINT_T0);  // for the next block
                 const V before = load(kept + g * H, m), sum = whole(sums + g * 32);
                 if (CELL == GRU && g == 2) xn[0] = before, acc[g] = add(sum, load(f.bias_n + u, m));
                 else acc[g] = add(sum, before);
               }
               finish_forward<CELL, 1>(f, t, first + r, u, G, acc, xn);
             });
}

template <int CELL> void slab_backward_tiled(const Backward &f, Int slab) {
  const Tiles here;
  const Int first = f.bounds[slab], rows = f.bounds[slab + 1] - first, *active = f.active + slab * f.T;
  const Int H = f.H, K = gates(CELL) * H, D = CELL == GRU ? 4 * H : K;
  Half *room = f.room + slab * f.halves;
  for (Int t = f.T - 1; t >= (f.dh ? -1 : 0); t--) {
    const Int begun = t + 1 < f.T ? active[t + 1] : 0, last = t < 0 ? rows : active[t];
    if (begun)
      tiled<1>(f.d + ((t + 1) * f.B + first) * D + (CELL == GRU ? H : 0), D, 1, K, begun, (const Half *)f.panel, H, t & 1, room,
               [&](Int r, Int u, const float *sums) {
                 V sum = whole(sums);
                 if (CELL == GRU) sum = add(sum, load(f.carry + (first + r) * H + u, lanes(H - u)));
                 finish_backward<CELL>(f, t, first + r, slab, u, 1, 1, &sum);
               });
    for (Int r = begun; r < last; r++)
      for (Int u = 0; u < H; u += W) tile_backward<CELL, PANELS, 1, 1>(f, t, first + r, slab, u, {nullptr, 0});
  }
}
#else
template <int CELL> void slab_forward_tiled(const Forward &, Int) {}
template <int CELL> void slab_backward_tiled(const Backward &, Int) {}
#endif

template <int CELL, int STORED> inline void forward_of(const Forward &f, Int s) {
  if constexpr (STORED == PLAIN_ROWS) slab_forward_plain<CELL>(f, s);
  else if (STORED == PANELS && f.room) slab_forward_tiled<CELL>(f, s);
  else slab_forward<CELL, STORED>(f, s);
}

template <int CELL, int STORED> inline void backward_of(const Backward &f, Int s) {
  if (STORED == PANELS && f.room) slab_backward_tiled<CELL>(f, s);
  else slab_backward<CELL, STORED>(f, s);
}

template <int STORED> inline void slab(const Forward &f, Int s) {
  switch (f.cell) {
#define CELL_(c) case c: return forward_of<c, STORED>(f, s);
    CELL_(LSTM) CELL_(PEEPHOLE) CELL_(COUPLED) CELL_(GRU) CELL_(ELMAN) CELL_(RELU)
#undef CELL_
  }
}

template <int STORED> inline void slab(const Backward &f, Int s) {
  switch (f.cell) {
#define CELL_(c) case c: return backward_of<c, STORED>(f, s);
    CELL_(LSTM) CELL_(PEEPHOLE) CELL_(COUPLED) CELL_(GRU) CELL_(ELMAN) CELL_(RELU)
#undef CELL_
  }
}

}  // namespace

API Int weft_cells_version() { return 4; }  // version of the structs above; must equal VERSION in jobs.py
API void weft_forward(const Forward *f, Start start) { run<Forward, slab<PANELS>>(f, start); }
API void weft_backward(const Backward *f, Start start) { run<Backward, slab<PANELS>>(f, start); }
// With weights as they are: panel_x W_x [G H, I], panel_h and panel W_h [G H, H].
API void weft_forward_plain(const Forward *f, Start start) { run<Forward, slab<PLAIN_ROWS>>(f, start); }
API void weft_backward_plain(const Backward *f, Start start) { run<Backward, slab<PLAIN_ROWS>>(f, start); }
#if defined(NARROW)
// In bfloat16: x, x_row and x_step in words of two numbers, panels as weft_pack_words makes them.
API void weft_forward_words(const Forward *f, Start start) { run<Forward, slab<WORDS>>(f, start); }
API void weft_backward_words(const Backward *f, Start start) { run<Backward, slab<WORDS>>(f, start); }
API Int weft_narrow_allowed() { return narrow_allowed(); }
API Int weft_row_words(Int K) { return row_words(HALF, K); }
#endif

namespace {

// Transpose four rows of four weights each: column i goes to p + i * apart.
inline void turn(const float *w, Int K, float *p, Int apart) {
  __m128 a = _mm_loadu_ps(w), b = _mm_loadu_ps(w + K), c = _mm_loadu_ps(w + 2 * K), d = _mm_loadu_ps(w + 3 * K);
  _MM_TRANSPOSE4_PS(a, b, c, d);
  _mm_storeu_ps(p, a), _mm_storeu_ps(p + apart, b), _mm_storeu_ps(p + 2 * apart, c), _mm_storeu_ps(p + 3 * apart, d);
}

}  // namespace

// Pack weights [G H, K] into panels for the forward pass: gated cells [blocks, K, G, W], else [blocks, K, NV, W].
API void weft_pack_forward(Int cell, Int H, Int K, const float *w, float *panel) {
  const Int G = gates((int)cell), registers = (H + W - 1) / W;
  const Blocks blocks(H);
  for (Int j = 0, n = G > 1 ? registers : blocks.count; j < n; j++) {
    const Int from = G > 1 ? j : blocks.first(j), NV = G > 1 ? G : blocks.first(j + 1) - from;
    float *p = panel + from * (G > 1 ? G : 1) * W * K;
    for (Int k0 = 0; k0 < K; k0 += 16)
      for (Int v = 0; v < NV; v++)
        for (Int l = 0; l < W; l += 4) {
          const Int u = (G > 1 ? j : from + v) * W + l, end = k0 + 16 < K ? k0 + 16 : K;
          const float *rows = w + ((G > 1 ? v * H : 0) + u) * K;
          Int k = k0;
          if (u + 4 <= H)
            for (; k + 4 <= end; k += 4) turn(rows + k, K, p + (k * NV + v) * W + l, NV * W);
          for (; k < end; k++)
            for (Int i = 0; i < 4; i++) p[(k * NV + v) * W + l + i] = u + i < H ? rows[i * K + k] : 0.f;
        }
  }
}

// Pack weights [K, H] into panels [blocks, K, NV, W] for the backward pass.
API void weft_pack_backward(Int H, Int K, const float *w, float *panel) {
  const Blocks blocks(H);
  for (Int j = 0; j < blocks.count; j++) {
    const Int u = blocks.first(j) * W, wide = blocks.first(j + 1) * W - u, n = H - u < wide ? H - u : wide;
    for (Int k = 0; k < K; k++) {
      float *p = panel + u * K + k * wide;
      memcpy(p, w + k * H + u, n * sizeof(float));
      if (n < wide) memset(p + n, 0, (wide - n) * sizeof(float));
    }
  }
}

#if defined(NARROW)
// Packed panels of float32 as panels of words of two bfloat16, (K + 1) / 2 deep. G: gates of a forward panel, 1 for others.
API void weft_pack_words(Int G, Int H, Int K, const float *panel, unsigned *words) {
  const Blocks blocks(H);
  for (Int j = 0, n = G > 1 ? blocks.registers : blocks.count; j < n; j++) {
    const Int wide = (G > 1 ? G : blocks.first(j + 1) - blocks.first(j)) * W;
    for (Int k = 0; k < K; k += 2) {
      for (Int i = 0; i < wide; i += W, words += W) {
        const V low = whole(panel + i), high = k + 1 < K ? whole(panel + wide + i) : set(0.f);
        const Words a = _mm512_cvtepu16_epi32((__m256i)_mm512_cvtneps_pbh(low)), b = _mm512_cvtepu16_epi32((__m256i)_mm512_cvtneps_pbh(high));
        _mm512_storeu_si512(words, _mm512_or_si512(a, _mm512_slli_epi32(b, 16)));
      }
      panel += (k + 1 < K ? 2 : 1) * wide;
    }
  }
}
#endif

#if defined(__AMX_BF16__)
// The same for tiles, [pairs of tiles of units, G, 2, ..]; with `back`, units are the second axis of the weights.
API void weft_pack_tiled(Int G, Int H, Int K, Int back, const float *w, unsigned short *panel) {
  const Int all = (H + TILE - 1) / TILE, size = deep(K) * TRIPLE, row = back ? 1 : K, step = back ? H : 1;
  for (Int j = 0; j < all; j += 2)
    for (Int g = 0; g < G; g++)
      for (Int v = j; v < all && v < j + 2; v++, panel += size)
        pack(w + g * H * K + v * TILE * row, H - v * TILE < TILE ? H - v * TILE : TILE, K, row, step, true, panel, 0, 1);
}
#endif
