// Products of rows by weights in bfloat16 (VDPBF16PS) or in bytes. A word of 32 bits holds two or four neighbours of a row,
// and an instruction multiplies as many words as a register has and adds up each. Tiles (tiles.h) take 16 rows and 16 words
// of each at once, as they lie here; what remains goes by registers.
//
// bfloat16: rows and weights are rounded to nearest. Bytes: a row is divided by its largest magnitude / 127 when it comes,
// a weight's row once, when it is packed. The sums are exact integers. The instructions want one factor without signs: rows
// are stored plus 128, and what that adds is subtracted from the sums. VPMADDUBSW, which does without VNNI, adds two
// products in 16 bits; there a weight's row is divided by the largest sum of two neighbours / 127 if that is larger, so
// that they fit: 255 * (127 + 1). A row with a number that is not finite becomes NaN.
#pragma once

#include "panels.h"
#include "softmax.h"
#include "tiles.h"

#include <cpuid.h>

#if defined(__AVX512BF16__) && defined(__AVX512VNNI__)
#define NARROW  // bfloat16, and bytes by VPDPBUSD
#endif

enum Kind : Int { FLOAT, HALF, BYTE };  // as KINDS in jobs.py

namespace {

constexpr float BYTES = 127;

inline constexpr Int in_word(Int kind) { return kind == BYTE ? 4 : 2; }
inline Int words_of(Int kind, Int K) { return (K + in_word(kind) - 1) / in_word(kind); }
inline Int row_words(Int kind, Int K) { return (words_of(kind, K) + W - 1) / W * W; }
// 32-bit words of the rounded rows, and of packed weights with their scales and corrections.
inline Int narrow_rows_size(Int kind, Int n, Int K) { return n * row_words(kind, K) + n; }
inline Int narrow_panel_size(Int kind, Int O, Int K) {
  return Blocks(O).registers * W * (words_of(kind, K) + (kind == BYTE ? 2 : 0));
}

inline unsigned short *halves(unsigned *words) { return (unsigned short *)words; }

#if defined(NARROW)
// Whether the processor has AVX512_BF16 (CPUID leaf 7.1, EAX bit 5) and AVX512_VNNI (leaf 7, ECX bit 11).
inline bool narrow_allowed() {
  unsigned a, b, c, d, more;
  return __get_cpuid_count(7, 0, &a, &b, &c, &d) && c >> 11 & 1 && __get_cpuid_count(7, 1, &more, &b, &c, &d) && more >> 5 & 1;
}

// 16 numbers in bfloat16, as float32.
inline V load(const unsigned short *p, M m) {
  return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(m, p)), 16));
}
inline void store(unsigned short *p, M m, V v) { _mm256_mask_storeu_epi16(p, m, (__m256i)_mm512_cvtneps_pbh(v)); }
#endif

#if defined(__AVX512F__)
inline Words integers(V x) { return _mm512_cvtps_epi32(x); }
inline V floats(Words x) { return _mm512_cvtepi32_ps(x); }
inline Words more(Words a, Words b) { return _mm512_add_epi32(a, b); }
inline Words less(Words a, Words b) { return _mm512_sub_epi32(a, b); }
inline Words words_at(const void *p) { return _mm512_loadu_si512(p); }
#else
inline Words integers(V x) { return _mm256_cvtps_epi32(x); }
inline V floats(Words x) { return _mm256_cvtepi32_ps(x); }
inline Words more(Words a, Words b) { return _mm256_add_epi32(a, b); }
inline Words less(Words a, Words b) { return _mm256_sub_epi32(a, b); }
inline Words words_at(const void *p) { return _mm256_loadu_si256((const __m256i *)p); }
#endif

// W / 4 words of a row, and sum + word * words.
#if defined(__AVX512F__)
inline void store_bytes(unsigned *to, Words x) {
  _mm_storeu_si128((__m128i *)to, _mm512_cvtepi32_epi8(more(x, _mm512_set1_epi32(128))));
}
#else
inline void store_bytes(unsigned *to, Words x) {
  const Words all = more(x, _mm256_set1_epi32(128)), pairs = _mm256_packs_epi32(all, all), bytes = _mm256_packus_epi16(pairs, pairs);
  _mm_storel_epi64((__m128i *)to, _mm256_castsi256_si128(_mm256_permutevar8x32_epi32(bytes, _mm256_setr_epi32(0, 4, 0, 0, 0, 0, 0, 0))));
}
#endif
INLINE Words times_bytes(Words sum, unsigned a, Words w) {
#if defined(NARROW)
  return _mm512_dpbusd_epi32(sum, _mm512_set1_epi32((int)a), w);
#elif defined(__AVX512F__)
  return more(sum, _mm512_madd_epi16(_mm512_maddubs_epi16(_mm512_set1_epi32((int)a), w), _mm512_set1_epi16(1)));
#else
  return more(sum, _mm256_madd_epi16(_mm256_maddubs_epi16(_mm256_set1_epi32((int)a), w), _mm256_set1_epi16(1)));
#endif
}

// Largest magnitude of a row / 127: NaN if a number is not finite, 1 if all are next to zero.
inline float scale_of(const float *a, Int K) {
  V high = set(0.f), bad = set(0.f);
  for (Int k = 0; k < K; k += W) {
    V x = load(a + k, lanes(K - k));
    high = most(high, without_sign(x)), bad = fma(x, set(0.f), bad);
  }
  const float top = largest(high);
  return (top > 1e-30f ? top / BYTES : 1.f) + total(bad);
}

// Round n rows of a [N, K] into `rows` [n, row_words], and their scales behind them.
inline void narrow_rows(Int kind, const float *a, Int lda, Int n, Int K, unsigned *rows) {
  const Int wide = row_words(kind, K), end = wide * in_word(kind);
  float *scales = (float *)(rows + n * wide);
  for (Int r = 0; r < n; r++, a += lda, rows += wide) {
#if defined(NARROW)
    if (kind == HALF) {
      for (Int k = 0; k < K; k += 2 * W)
        _mm512_storeu_si512(rows + k / 2, (Words)_mm512_cvtne2ps_pbh(load(a + k + W, lanes(K - k - W)), load(a + k, lanes(K - k))));
      continue;
    }
#endif
    const float scale = scales[r] = scale_of(a, K);
    const V factor = set(1 / scale);
    for (Int k = 0; k < end; k += W) store_bytes(rows + k / 4, integers(mul(load(a + k, lanes(K - k)), factor)));
  }
}

// Sums keep one type, and narrow_multiply unrolls its last loop early: else GCC 12 stores every sum at every step, which takes
// twice as long as the products.
typedef int Ints __attribute__((vector_size(W * 4)));
template <Int KIND> using Sum = std::conditional_t<KIND == BYTE, Ints, V>;

template <Int KIND> INLINE Sum<KIND> times(Sum<KIND> sum, const unsigned *a, const unsigned *b) {
  if constexpr (KIND == BYTE) return (Ints)times_bytes((Words)sum, *a, words_at(b));
#if defined(NARROW)
  else return _mm512_dpbf16_ps(sum, (__m512bh)_mm512_set1_epi32((int)*a), (__m512bh)words_at(b));
#endif
}

// sums [MR, NV, W] = a [MR, words] times a panel [words, NV, W]; few sums are split, so that none waits for the one before.
template <Int KIND, int MR, int NV>
NOINLINE void narrow_multiply(float *sums, const unsigned *a, Int lda, const unsigned *panel, Int words) {
  constexpr int S = MR * NV <= 2 ? 4 : MR * NV <= 8 ? 2 : 1;
  Sum<KIND> acc[S][MR][NV];
  for (int s = 0; s < S; s++)
    for (int r = 0; r < MR; r++)
      for (int v = 0; v < NV; v++) acc[s][r][v] = Sum<KIND>{};
  Int k = 0;
  for (; k + S <= words; k += S)
    for (int s = 0; s < S; s++)
      for (int r = 0; r < MR; r++)
        for (int v = 0; v < NV; v++)
          acc[s][r][v] = times<KIND>(acc[s][r][v], a + r * lda + k + s, panel + ((k + s) * NV + v) * W);
  for (; k < words; k++)
    for (int r = 0; r < MR; r++)
      for (int v = 0; v < NV; v++) acc[0][r][v] = times<KIND>(acc[0][r][v], a + r * lda + k, panel + (k * NV + v) * W);
#pragma GCC unroll 8
  for (int r = 0; r < MR; r++)
    for (int v = 0; v < NV; v++) {
      Sum<KIND> sum = acc[0][r][v];
      for (int s = 1; s < S; s++)
        if constexpr (KIND == HALF) sum = add(sum, acc[s][r][v]);
        else sum += acc[s][r][v];
      store(sums + (r * NV + v) * W, lanes(W), (V)sum);
    }
}

#if defined(__AMX_INT8__)
// The same for 16 rows: whole tiles of words, then the rest.
template <Int KIND, int NV>
NOINLINE void narrow_tiled(float *sums, const unsigned *a, Int lda, const unsigned *panel, Int words) {
  _tile_zero(0); _tile_zero(1); _tile_zero(2); _tile_zero(3);
  Int k = 0;
  for (; k + TILE <= words; k += TILE) {
    _tile_loadd(4, a + k, lda * 4);
#define COLUMN_(v, b) \
  if constexpr (v < NV) { \
    _tile_loadd(b, panel + (k * NV + v) * W, NV * W * 4); \
    if constexpr (KIND == BYTE) _tile_dpbusd(v, 4, b); else _tile_dpbf16ps(v, 4, b); \
  }
    COLUMN_(0, 5) COLUMN_(1, 6) COLUMN_(2, 7) COLUMN_(3, 5)
#undef COLUMN_
  }
  _tile_stored(0, sums, NV * W * 4);
  if constexpr (NV > 1) _tile_stored(1, sums + W, NV * W * 4);
  if constexpr (NV > 2) _tile_stored(2, sums + 2 * W, NV * W * 4);
  if constexpr (NV > 3) _tile_stored(3, sums + 3 * W, NV * W * 4);
  for (; k < words; k++)
    for (int i = 0; i < TILE * NV; i++) {
      const auto sum = times<KIND>((Sum<KIND>)whole(sums + i * W), a + i / NV * lda + k, panel + (k * NV + i % NV) * W);
      store(sums + i * W, lanes(W), (V)sum);
    }
}
#endif

// As `dense` (dense.h); `room`: narrow_rows_size words.
template <Int KIND, class F>
inline void narrow_dense(const unsigned *panels, const float *bias, Int n, Int K, Int O, const float *a, Int lda,
                         unsigned *room, const F &done) {
  const Int words = words_of(KIND, K), wide = row_words(KIND, K);
  const Blocks blocks(O);
  const float *row_scales = (const float *)(room + n * wide);
  const float *scales = (const float *)(panels + blocks.registers * W * words);
  const int *extra = (const int *)(scales + blocks.registers * W);
  narrow_rows(KIND, a, lda, n, K, room);
  auto block = [&](auto vectors, Int from) {
    constexpr int NV = decltype(vectors)::value;
    const unsigned *panel = panels + from * W * words;
    auto rows = [&](auto height, Int row) {
      constexpr int MR = decltype(height)::value;
      const Int size = NV * W * words;
      for (Int i = size * row / n; n > MR && i < size * (row + MR) / n; i += 16)  // of the next panel, as in `dense`
        _mm_prefetch((const char *)(panel + size + i), _MM_HINT_T1);
      float sums[MR * NV * W];
#if defined(__AMX_INT8__)
      if constexpr (MR == TILE) narrow_tiled<KIND, NV>(sums, room + row * wide, wide, panel, words);
      else
#endif
        narrow_multiply<KIND, MR, NV>(sums, room + row * wide, wide, panel, words);
      for (int v = 0; v < NV; v++) {
        const Int unit = (from + v) * W;
        const M m = lanes(O - unit);
        const V shift = bias ? load(bias + unit, m) : set(0.f);
        for (int r = 0; r < MR; r++) {
          V sum = whole(sums + (r * NV + v) * W);
          if constexpr (KIND == BYTE)
            sum = mul(floats(less(bits(sum), words_at(extra + unit))), mul(set(row_scales[row + r]), whole(scales + unit)));
          done(row + r, unit, m, add(sum, shift));
        }
      }
    };
    Int row = 0;
#if defined(__AMX_INT8__)
    for (; row + TILE <= n; row += TILE) rows(std::integral_constant<int, TILE>(), row);
#endif
    tiles<max_rows(NV)>(row, n, rows);
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

// The same for a weight's row.
inline float scale_of_weights(const float *w, Int K) {
  float scale = scale_of(w, K);
#if !defined(NARROW)
  for (Int k = 0; k + 1 < K; k += 2) {
    const float both = std::fabs(w[k] + w[k + 1]) / BYTES;
    if (both > scale) scale = both;
  }
#endif
  return scale;
}

// Pack weights [O, K] into panels [blocks, words, NV, W]; for bytes followed by scales and corrections [registers, W].
inline void narrow_pack(Int kind, Int O, Int K, const float *weight, unsigned *out) {
  const Blocks blocks(O);
  const Int words = words_of(kind, K), each = in_word(kind), all = blocks.registers * W;
  float *scales = (float *)(out + all * words);
  int *extra = (int *)(scales + all);
  memset(out, 0, narrow_panel_size(kind, O, K) * 4);
  for (Int j = 0; j < blocks.count; j++) {
    const Int from = blocks.first(j) * W, wide = blocks.first(j + 1) * W - from;
    for (Int o = from; o < from + wide && o < O; o++) {
      const float *w = weight + o * K;
      const float scale = kind == BYTE ? scale_of_weights(w, K) : 1;
      int sum = 0;
      for (Int k = 0; k < K; k++) {
        unsigned *word = out + from * words + k / each * wide + o - from;
        if (kind == HALF) {
          halves(word)[k % 2] = narrowed(w[k]);
        } else {
          const int q = scale == scale ? (int)std::nearbyint(w[k] / scale) : 0;
          ((signed char *)word)[k % 4] = (signed char)q;
          sum += q;
        }
      }
      if (kind == BYTE) scales[o] = scale, extra[o] = 128 * sum;
    }
  }
}

}  // namespace
