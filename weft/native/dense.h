// W x + b for the rows of a search step, each register of outputs handed over while it is in the L1 cache: in float32, on
// tiles (tiles.h), or with weights and rows rounded to bfloat16 or to bytes (narrow.h).
#pragma once

#include "narrow.h"
#include "panels.h"
#include "tiles.h"

struct Dense { const float *panel, *bias; };  // bias [O] or NULL; the panel has the layout of its kind

namespace {

#if defined(__AMX_BF16__)
typedef Tiles Tiled;
#else
struct Tiled { explicit Tiled(bool) {} };
#endif

// A piece of a panel and a group of rows fit into the L1 cache; the same piece of the next panel is prefetched meanwhile. Rows
// that one call takes read each panel once, in order: the processor's own prefetching is faster there.
constexpr Int PIECE = 64, GROUP = 48;

// How the rows of a slab are multiplied: with a buffer, float32 goes by tiles; the other kinds round their rows there.
struct How { Int kind; unsigned short *buffer; };

// Add the product of a piece of MR rows and a panel to the sums, which begin as `bias` if it is given; one instantiation
// for all callers of `dense`.
template <int MR, int NV>
NOINLINE void multiply(float *sums, const V *bias, const float *a, Int lda, const float *panel, Int K) {
  V acc[MR][NV];
  for (int r = 0; r < MR; r++)
    for (int v = 0; v < NV; v++) acc[r][v] = bias ? bias[v] : whole(sums + (r * NV + v) * W);
  product<MR, NV>(acc, a, lda, panel, K);
  for (int r = 0; r < MR; r++)
    for (int v = 0; v < NV; v++) store(sums + (r * NV + v) * W, lanes(W), acc[r][v]);
}

// Call done(row, unit, mask, sum) with W x + b for all rows of a [N, K] and registers of outputs.
template <class F>
inline void dense(const Dense &w, Int n, Int K, Int O, const float *a, Int lda, const How &how, const F &done) {
#if defined(NARROW)
  if (how.kind == HALF) return narrow_dense<HALF>((const unsigned *)w.panel, w.bias, n, K, O, a, lda, (unsigned *)how.buffer, done);
#endif
  if (how.kind == BYTE) return narrow_dense<BYTE>((const unsigned *)w.panel, w.bias, n, K, O, a, lda, (unsigned *)how.buffer, done);
#if defined(__AMX_BF16__)
  if (how.buffer)
    return tiled<1>(a, lda, 1, K, n, (const Half *)w.panel, O, false, how.buffer, [&](Int r, Int u, const float *sums) {
      const M m = lanes(O - u);
      done(r, u, m, w.bias ? add(whole(sums), load(w.bias + u, m)) : whole(sums));
    });
#endif
  const Blocks blocks(O);
  auto block = [&](auto vectors, Int from) {
    constexpr int NV = decltype(vectors)::value;
    const float *panel = w.panel + from * W * K;
    M m[NV];
    V bias[NV];
    for (int v = 0; v < NV; v++) {
      const Int unit = (from + v) * W;
      m[v] = lanes(O - unit), bias[v] = w.bias ? load(w.bias + unit, m[v]) : set(0.f);
    }
    for (Int group = 0; group < n; group += GROUP) {
      const Int end = group + GROUP < n ? group + GROUP : n;
      float sums[GROUP * NV * W];  // over the pieces of K so far
      for (Int k = 0; k < K; k += PIECE) {
        const Int wide = K - k < PIECE + PIECE / 2 ? K - k : PIECE;
        tiles<max_rows(NV)>(group, end, [&](auto height, Int row) {
          constexpr int MR = decltype(height)::value;
          const Int size = wide * NV * W;  // this call's part of the same piece of the next panel
          for (Int i = size * row / n; n > MR && i < size * (row + MR) / n; i += 16)
            _mm_prefetch((const char *)(panel + (K + k) * NV * W + i), _MM_HINT_T1);
          float *sum = sums + (row - group) * NV * W;
          multiply<MR, NV>(sum, k ? nullptr : bias, a + row * lda + k, lda, panel + k * NV * W, wide);
          if (k + wide == K)  // while they are in the L1 cache
            for (int i = 0; i < MR * NV; i++) done(row + i / NV, (from + i % NV) * W, m[i % NV], whole(sum + i * W));
        });
        if (k + wide == K) break;
      }
    }
  };
  for (Int j = 0; j < blocks.count; j++) {
    const Int from = blocks.first(j);
    switch (blocks.first(j + 1) - from) {
      case 1: block(std::integral_constant<int, 1>(), from); break;
      case 2: block(std::integral_constant<int, 2>(), from); break;
      case 3: block(std::integral_constant<int, 3>(), from); break;
      case 4: block(std::integral_constant<int, 4>(), from); break;
    }
  }
}

}  // namespace
