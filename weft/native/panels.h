// Products of rows by weights that were packed into panels [blocks, K, NV, W]: up to four registers of outputs a block.
#pragma once

#include "common.h"

#include <type_traits>

namespace {

// acc += a [MR, K] times a panel [K, NV, W]
template <int MR, int NV>
INLINE void product(V (&acc)[MR][NV], const float *a, Int lda, const float *panel, Int K) {
  Int k = 0;
  if constexpr (MR * NV <= 8) {  // few sums: split K, so that additions do not wait for each other
    constexpr int S = MR * NV <= 4 ? 4 : 2;
    V part[S][MR][NV];
    for (int s = 0; s < S; s++)
      for (int r = 0; r < MR; r++)
        for (int v = 0; v < NV; v++) part[s][r][v] = set(0.f);
    for (; k + S <= K; k += S)
      for (int s = 0; s < S; s++)
        for (int r = 0; r < MR; r++) {
          V x = set(a[r * lda + k + s]);
          for (int v = 0; v < NV; v++)
            part[s][r][v] = fma(x, whole(panel + ((k + s) * NV + v) * W), part[s][r][v]);
        }
    for (int s = 0; s < S; s++)
      for (int r = 0; r < MR; r++)
        for (int v = 0; v < NV; v++) acc[r][v] = add(acc[r][v], part[s][r][v]);
  }
  for (; k < K; k++) {
    V b[NV];
    for (int v = 0; v < NV; v++) b[v] = whole(panel + (k * NV + v) * W);
    for (int r = 0; r < MR; r++) {
      V x = set(a[r * lda + k]);
      for (int v = 0; v < NV; v++) acc[r][v] = fma(x, b[v], acc[r][v]);
    }
  }
}

// Call f(height, row) for blocks of nearly equal height that cover the rows.
template <int MAX, class F> inline void tiles(Int first, Int last, const F &f) {
  Int n = last - first, count = (n + MAX - 1) / MAX, row = first;
  for (Int i = 0; i < count; i++) {
    Int height = n / count + (i < n % count);
    switch (height) {
#define TILE(h) case h: if constexpr (h <= MAX) f(std::integral_constant<int, h>(), row); break;
      TILE(1) TILE(2) TILE(3) TILE(4) TILE(5) TILE(6) TILE(7) TILE(8)
#undef TILE
    }
    row += height;
  }
}

// Blocks of up to four registers that cover n units, as even as possible.
struct Blocks {
  Int registers, count;
  explicit Blocks(Int n) : registers((n + W - 1) / W), count((registers + 3) / 4) {}
  Int first(Int j) const { return registers * j / count; }
};

}  // namespace
