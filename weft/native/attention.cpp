// Attention over short sequences, softmax(M + Q K^T / sqrt(K)) V, and its gradients, on the CPU in float32. One head of one
// row at a time: its keys, values and weights stay in the L1 and L2 caches. The weights are kept for the backward pass.
//
// Plain C interface, compiled like cells.cpp.
#include "panels.h"
#include "softmax.h"

struct Attend {
  Int rows, heads, queries, places, size, slabs, causal;
  Int q_row, q_head, q_step, k_row, k_head, k_step, v_row, v_head, v_step, dy_row, dy_head, dy_step, mask_row;
  const float *q, *k, *v;     // [B, H, T, K], [B, H, S, K] with their strides, the last one 1
  const unsigned char *mask;  // [B, S], 0 or 1, or NULL
  float *weights;             // [B, H, T, S'], S' = S in whole registers; a result of the forward pass
  float *y;                   // [B, T, H, K], the result
  const float *dy;            // [B, H, T, K] with its strides
  float *dq, *dk, *dv;        // [B, T, H, K], [B, S, H, K], [B, S, H, K], results of the backward pass
};

namespace {

constexpr Int LONGEST = 128, WIDEST = 64;  // the same in kernels/attention.py

// out [m, n] = a b of depth K, n whole registers; DOWN: a is given by columns, a [K, m].
template <bool DOWN, int MR, int NV>
NOINLINE void block(float *out, Int row, const float *a, Int lda, const float *b, Int ldb, Int K) {
  V acc[MR][NV];
  for (int r = 0; r < MR; r++)
    for (int v = 0; v < NV; v++) acc[r][v] = set(0.f);
  for (Int k = 0; k < K; k++, b += ldb) {
    V line[NV];
    for (int v = 0; v < NV; v++) line[v] = whole(b + v * W);
    for (int r = 0; r < MR; r++) {
      const V x = set(DOWN ? a[k * lda + r] : a[r * lda + k]);
      for (int v = 0; v < NV; v++) acc[r][v] = fma(x, line[v], acc[r][v]);
    }
  }
  for (int r = 0; r < MR; r++)
    for (int v = 0; v < NV; v++) store(out + r * row + v * W, lanes(W), acc[r][v]);
}

template <bool DOWN>
void times(float *out, Int row, Int m, Int n, const float *a, Int lda, const float *b, Int ldb, Int K) {
  const Blocks blocks(n);
  for (Int j = 0; j < blocks.count; j++) {
    const Int at = blocks.first(j) * W;
    auto strip = [&](auto vectors) {
      constexpr int NV = decltype(vectors)::value;
      tiles<max_rows(NV)>(0, m, [&](auto height, Int r) {
        block<DOWN, decltype(height)::value, NV>(out + r * row + at, row, a + (DOWN ? r : r * lda), lda, b + at, ldb, K);
      });
    };
    switch (blocks.first(j + 1) - blocks.first(j)) {
      case 1: strip(std::integral_constant<int, 1>()); break;
      case 2: strip(std::integral_constant<int, 2>()); break;
      case 3: strip(std::integral_constant<int, 3>()); break;
      case 4: strip(std::integral_constant<int, 4>()); break;
    }
  }
}

// x [S, K] to [K, wide], zeros after S; K and wide are multiples of 8.
void turn(const float *x, Int step, Int S, Int K, float *out, Int wide) {
  for (Int s = 0; s < wide; s += 8)
    for (Int k = 0; k < K; k += 8) {
      __m256 a[8], b[8];
      for (Int i = 0; i < 8; i++) a[i] = s + i < S ? _mm256_loadu_ps(x + (s + i) * step + k) : _mm256_setzero_ps();
      for (int i = 0; i < 4; i++)
        b[2 * i] = _mm256_unpacklo_ps(a[2 * i], a[2 * i + 1]), b[2 * i + 1] = _mm256_unpackhi_ps(a[2 * i], a[2 * i + 1]);
      for (int i = 0; i < 2; i++)
        for (int j = 0; j < 2; j++) {
          a[4 * i + 2 * j] = _mm256_shuffle_ps(b[4 * i + j], b[4 * i + j + 2], 0x44);
          a[4 * i + 2 * j + 1] = _mm256_shuffle_ps(b[4 * i + j], b[4 * i + j + 2], 0xee);
        }
      for (int i = 0; i < 4; i++) {
        _mm256_storeu_ps(out + (k + i) * wide + s, _mm256_permute2f128_ps(a[i], a[i + 4], 0x20));
        _mm256_storeu_ps(out + (k + i + 4) * wide + s, _mm256_permute2f128_ps(a[i], a[i + 4], 0x31));
      }
    }
}

// y where x is above -87, or NaN; else 0
#if defined(__AVX512F__)
inline V seen(V x, V y) { return _mm512_maskz_mov_ps(_mm512_cmp_ps_mask(x, set(-87.f), _CMP_NLE_UQ), y); }
#else
inline V seen(V x, V y) { return _mm256_and_ps(_mm256_cmp_ps(x, set(-87.f), _CMP_NLE_UQ), y); }
#endif

// Energies to weights in place; hide [wide] is added: 0 where a key is real.
void soften(float *row, Int wide, float scale, const float *hide) {
  V top = set(-INFINITY);
  for (Int i = 0; i < wide; i += W) {
    const V x = fma(whole(row + i), set(scale), whole(hide + i));
    store(row + i, lanes(W), x), top = most(top, x);
  }
  const V peak = set(largest(top));
  V sum = set(0.f);
  for (Int i = 0; i < wide; i += W) {
    const V x = sub(whole(row + i), peak), e = seen(x, power(x));
    store(row + i, lanes(W), e), sum = add(sum, e);
  }
  const V by = set(1.f / total(sum));
  for (Int i = 0; i < wide; i += W) store(row + i, lanes(W), mul(whole(row + i), by));
}

inline Int registers(Int n) { return (n + W - 1) / W * W; }

inline void forward(const Attend &p, Int slab) {
  const Int T = p.queries, S = p.places, K = p.size, D = p.heads * K, wide = registers(S);
  const float scale = 1.f / std::sqrt((float)K), low = -3.4028234e38f;  // low: all weights equal if nothing is seen
  float turned[WIDEST * LONGEST], hide[2 * LONGEST];
  for (Int b = p.rows * slab / p.slabs; b < p.rows * (slab + 1) / p.slabs; b++) {
    for (Int s = 0; s < 2 * wide; s++) hide[s] = s < S ? (p.mask && !p.mask[b * p.mask_row + s] ? low : 0.f) : -INFINITY;
    if (p.causal)
      for (Int s = 0; s < 2 * wide; s++) hide[s] = s < wide ? 0.f : -INFINITY;
    for (Int h = 0; h < p.heads; h++) {
      float *weights = p.weights + (b * p.heads + h) * T * wide;
      turn(p.k + b * p.k_row + h * p.k_head, p.k_step, S, K, turned, wide);
      times<false>(weights, wide, T, wide, p.q + b * p.q_row + h * p.q_head, p.q_step, turned, wide, K);
      for (Int t = 0; t < T; t++) soften(weights + t * wide, wide, scale, p.causal ? hide + wide - t - 1 : hide);
      times<false>(p.y + b * T * D + h * K, D, T, K, weights, wide, p.v + b * p.v_row + h * p.v_head, p.v_step, S);
    }
  }
}

inline void backward(const Attend &p, Int slab) {
  const Int T = p.queries, S = p.places, K = p.size, D = p.heads * K, wide = registers(S);
  const float scale = 1.f / std::sqrt((float)K);
  float turned[WIDEST * LONGEST], energy[LONGEST * LONGEST];
  for (Int b = p.rows * slab / p.slabs; b < p.rows * (slab + 1) / p.slabs; b++) {
    // where nothing is seen, all weights are equal, whatever the energies
    const float by = p.mask && !memchr(p.mask + b * p.mask_row, 1, S) ? 0.f : scale;
    for (Int h = 0; h < p.heads; h++) {
      const float *weights = p.weights + (b * p.heads + h) * T * wide, *dy = p.dy + b * p.dy_row + h * p.dy_head;
      times<true>(p.dv + b * S * D + h * K, D, S, K, weights, wide, dy, p.dy_step, T);
      turn(p.v + b * p.v_row + h * p.v_head, p.v_step, S, K, turned, wide);
      times<false>(energy, wide, T, wide, dy, p.dy_step, turned, wide, K);
      for (Int t = 0; t < T; t++) {  // softmax: p (d - sum p d)
        const float *w = weights + t * wide;
        float *d = energy + t * wide;
        V sum = set(0.f);
        for (Int i = 0; i < wide; i += W) sum = fma(whole(w + i), whole(d + i), sum);
        const V mean = set(total(sum));
        for (Int i = 0; i < wide; i += W)
          store(d + i, lanes(W), mul(mul(whole(w + i), set(by)), sub(whole(d + i), mean)));
      }
      times<false>(p.dq + b * T * D + h * K, D, T, K, energy, wide, p.k + b * p.k_row + h * p.k_head, p.k_step, S);
      times<true>(p.dk + b * S * D + h * K, D, S, K, energy, wide, p.q + b * p.q_row + h * p.q_head, p.q_step, T);
    }
  }
}

}  // namespace

API Int weft_attention_version() { return 1; }  // version of the struct above; must equal VERSIONS in jobs.py
API void weft_attend(const Attend *work, Start start) { run<Attend, forward>(work, start); }
API void weft_attend_back(const Attend *work, Start start) { run<Attend, backward>(work, start); }
