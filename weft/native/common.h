// Shared by all sources: registers of 16 floats (8 with AVX2), the activations, threads.
#pragma once

#include <immintrin.h>

#include <atomic>
#include <cstring>

typedef long long Int;

#if defined(_WIN32)
#define API extern "C" __declspec(dllexport)
#else
#define API extern "C" __attribute__((visibility("default")))
#endif

#define NOINLINE __attribute__((noinline))
// Without inlining, arrays of registers would be passed through memory.
#define INLINE inline __attribute__((always_inline))

namespace {

#if defined(__AVX512F__)
constexpr int W = 16;  // floats in a register
typedef __m512 V;
typedef __mmask16 M;
inline M lanes(Int n) { return n >= W ? 0xFFFF : (n <= 0 ? 0 : (M)((1u << n) - 1)); }
inline V load(const float *p, M m) { return _mm512_maskz_loadu_ps(m, p); }
inline void store(float *p, M m, V v) { _mm512_mask_storeu_ps(p, m, v); }
inline V load_or(const float *p, M m, V other) { return _mm512_mask_loadu_ps(other, m, p); }
inline V only(M m, V v) { return _mm512_maskz_mov_ps(m, v); }  // zero in the other lanes
inline V whole(const float *p) { return _mm512_loadu_ps(p); }
inline V set(float x) { return _mm512_set1_ps(x); }
inline V fma(V a, V b, V c) { return _mm512_fmadd_ps(a, b, c); }
inline V fnma(V a, V b, V c) { return _mm512_fnmadd_ps(a, b, c); }
inline V mul(V a, V b) { return _mm512_mul_ps(a, b); }
inline V add(V a, V b) { return _mm512_add_ps(a, b); }
inline V sub(V a, V b) { return _mm512_sub_ps(a, b); }
inline V div(V a, V b) { return _mm512_div_ps(a, b); }
inline V least(V a, V b) { return _mm512_min_ps(a, b); }  // min and max of NaN and a number return the second operand,
inline V most(V a, V b) { return _mm512_max_ps(a, b); }   // so x is second and NaN is kept
inline V nearest(V a) { return _mm512_roundscale_ps(a, 0); }
inline V times_power(V p, V n) { return _mm512_scalef_ps(p, n); }
inline V positive(V x, V y) { return _mm512_maskz_mov_ps(_mm512_cmp_ps_mask(x, set(0), _CMP_GT_OQ), y); }
typedef __m512i Words;
inline Words bits(V x) { return _mm512_castps_si512(x); }
inline V from_bits(Words x) { return _mm512_castsi512_ps(x); }
inline V without_sign(V x) { return _mm512_castsi512_ps(_mm512_and_epi32(bits(x), _mm512_set1_epi32(0x7fffffff))); }
inline V with_sign(V x, V of) {
  __m512i sign = _mm512_and_epi32(bits(of), _mm512_set1_epi32((int)0x80000000));
  return _mm512_castsi512_ps(_mm512_or_epi32(bits(x), sign));
}
constexpr int max_rows(int vectors) { return vectors == 4 ? 6 : 8; }
#else
constexpr int W = 8;
typedef __m256 V;
typedef __m256i M;
inline M lanes(Int n) {
  return _mm256_cmpgt_epi32(_mm256_set1_epi32(n > W ? W : (int)n), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}
inline V load(const float *p, M m) { return _mm256_maskload_ps(p, m); }
inline void store(float *p, M m, V v) {  // AMD's masked store takes a dozen cycles
  if (_mm256_movemask_ps(_mm256_castsi256_ps(m)) == 0xff) _mm256_storeu_ps(p, v);
  else _mm256_maskstore_ps(p, m, v);
}
inline V load_or(const float *p, M m, V other) { return _mm256_blendv_ps(other, load(p, m), _mm256_castsi256_ps(m)); }
inline V only(M m, V v) { return _mm256_and_ps(v, _mm256_castsi256_ps(m)); }
inline V whole(const float *p) { return _mm256_loadu_ps(p); }
inline V set(float x) { return _mm256_set1_ps(x); }
inline V fma(V a, V b, V c) { return _mm256_fmadd_ps(a, b, c); }
inline V fnma(V a, V b, V c) { return _mm256_fnmadd_ps(a, b, c); }
inline V mul(V a, V b) { return _mm256_mul_ps(a, b); }
inline V add(V a, V b) { return _mm256_add_ps(a, b); }
inline V sub(V a, V b) { return _mm256_sub_ps(a, b); }
inline V div(V a, V b) { return _mm256_div_ps(a, b); }
inline V least(V a, V b) { return _mm256_min_ps(a, b); }
inline V most(V a, V b) { return _mm256_max_ps(a, b); }
inline V nearest(V a) { return _mm256_round_ps(a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC); }
inline V times_power(V p, V n) {
  __m256i e = _mm256_add_epi32(_mm256_cvtps_epi32(n), _mm256_set1_epi32(127));
  return mul(p, _mm256_castsi256_ps(_mm256_slli_epi32(e, 23)));
}
inline V positive(V x, V y) { return _mm256_and_ps(_mm256_cmp_ps(x, set(0), _CMP_GT_OQ), y); }
typedef __m256i Words;
inline Words bits(V x) { return _mm256_castps_si256(x); }
inline V from_bits(Words x) { return _mm256_castsi256_ps(x); }
inline V without_sign(V x) { return _mm256_andnot_ps(set(-0.f), x); }
inline V with_sign(V x, V of) { return _mm256_or_ps(x, _mm256_and_ps(set(-0.f), of)); }
constexpr int max_rows(int vectors) { return vectors == 4 ? 3 : vectors == 3 ? 4 : 6; }
#endif

// e^x - 1 = (p + 1) 2^n - 1 with p = e^r - 1 and |r| <= log(2) / 2, as in Cephes; a rational tanh was too
// inexact near 1, where its slope 1 - y^2 is a small difference.
struct Power {
  V p, scale;
  explicit Power(V x) {
    V n = nearest(mul(x, set(1.44269504f)));
    V r = fnma(n, set(-2.12194440e-4f), fnma(n, set(0.693359375f), x));
    V q = fma(set(1.9875691500e-4f), r, set(1.3981999507e-3f));
    q = fma(q, r, set(8.3334519073e-3f));
    q = fma(q, r, set(4.1665795894e-2f));
    q = fma(q, r, set(1.6666665459e-1f));
    q = fma(q, r, set(5.0000001201e-1f));
    p = fma(q, mul(r, r), r);
    scale = times_power(set(1.f), n);
  }
};
inline V sigmoid(V x) {
  Power e(sub(set(0.f), least(set(87.f), most(set(-87.f), x))));
  return div(set(1.f), add(set(1.f), fma(e.p, e.scale, e.scale)));
}
inline V tangent(V x) {  // tanh x = (e^2|x| - 1) / (e^2|x| + 1) with the sign of x
  V magnitude = least(set(20.f), without_sign(x));
  Power e(add(magnitude, magnitude));
  V less = fma(e.p, e.scale, sub(e.scale, set(1.f)));
  return with_sign(div(less, add(less, set(2.f))), x);
}
inline float total(V v) {
#if defined(__AVX512F__)
  return _mm512_reduce_add_ps(v);
#else
  __m128 s = _mm_add_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
  s = _mm_add_ps(s, _mm_movehl_ps(s, s));
  return _mm_cvtss_f32(_mm_add_ss(s, _mm_shuffle_ps(s, s, 1)));
#endif
}
// The totals of four registers.
inline __m128 totals(V a, V b, V c, V d) {
#if defined(__AVX512F__)
  const V ab = add(_mm512_unpacklo_ps(a, b), _mm512_unpackhi_ps(a, b)), cd = add(_mm512_unpacklo_ps(c, d), _mm512_unpackhi_ps(c, d));
  const V each = add(_mm512_shuffle_ps(ab, cd, 0x44), _mm512_shuffle_ps(ab, cd, 0xee));
  const __m256 half = _mm256_add_ps(_mm512_castps512_ps256(each), _mm512_castps512_ps256(_mm512_shuffle_f32x4(each, each, 0xee)));
#else
  const V ab = add(_mm256_unpacklo_ps(a, b), _mm256_unpackhi_ps(a, b)), cd = add(_mm256_unpacklo_ps(c, d), _mm256_unpackhi_ps(c, d));
  const V half = add(_mm256_shuffle_ps(ab, cd, 0x44), _mm256_shuffle_ps(ab, cd, 0xee));
#endif
  return _mm_add_ps(_mm256_castps256_ps128(half), _mm256_extractf128_ps(half, 1));
}
inline float largest(V v) {
#if defined(__AVX512F__)
  return _mm512_reduce_max_ps(v);
#else
  __m128 s = _mm_max_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
  s = _mm_max_ps(s, _mm_movehl_ps(s, s));
  return _mm_cvtss_f32(_mm_max_ss(s, _mm_shuffle_ps(s, s, 1)));
#endif
}
inline V slope_sigmoid(V y) { return mul(y, sub(set(1.f), y)); }
inline V slope_tangent(V y) { return fnma(y, y, set(1.f)); }

// Call SLAB(work, number) for every slab of rows, with one thread per slab.
template <class Work, void (*SLAB)(const Work &, Int)> struct Job {
  const Work *work;
  std::atomic<Int> next;
  static void run(void *self) {
    Job *job = (Job *)self;
    for (Int s; (s = job->next++) < job->work->slabs;) SLAB(*job->work, s);
  }
};

// The function that starts OpenMP's threads (GOMP_parallel of the library that torch ships), or NULL for one thread.
typedef void (*Start)(void (*)(void *), void *, unsigned, unsigned);

template <class Work, void (*SLAB)(const Work &, Int)> void run(const Work *work, Start start) {
  Job<Work, SLAB> job{work, {0}};
  if (start && work->slabs > 1)
    start(Job<Work, SLAB>::run, &job, (unsigned)work->slabs, 0);
  else
    Job<Work, SLAB>::run(&job);
}

}  // namespace
