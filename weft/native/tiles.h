// Products of float32 numbers on a processor's tiles (AMX), which multiply bfloat16: each number is split into three
// parts of eight bits that add up to it, and the six products of parts that matter are summed in float32. The
// omitted products are 2^-24 of the result, as much as the rounding of float32, so the precision is that of float32
// at a multiple of its speed. A number that is not finite makes every sum that contains it NaN.
//
// A tile has 16 rows of 32 numbers; the weights' tile has 16 rows of 16 pairs. Packed, the three parts follow
// each other: [tile of rows, depth, part, 512].
#pragma once

#include "common.h"

#if defined(__AMX_BF16__)

namespace {

typedef unsigned short Half;
constexpr Int TILE = 16, DEEP = 32, PART = TILE * DEEP, TRIPLE = 3 * PART;

inline Int deep(Int K) { return (K + DEEP - 1) / DEEP; }       // tiles that cover K numbers
inline Int packed_size(Int n, Int K) { return (n + TILE - 1) / TILE * deep(K) * TRIPLE; }

// Configures eight tile registers of 16 rows by 64 bytes during its lifetime, then restores the previous
// configuration (oneDNN uses tiles too), but not their contents.
struct Tiles {
  struct Shape { unsigned char palette, start, none[14]; unsigned short wide[16]; unsigned char rows[16]; };
  Shape before;
  const bool on;
  explicit Tiles(bool on = true) : on(on) {
    if (!on) return;
    _tile_storeconfig(&before);
    Shape mine = {};
    mine.palette = 1;
    for (int i = 0; i < 8; i++) mine.wide[i] = 64, mine.rows[i] = 16;
    _tile_loadconfig(&mine);
  }
  ~Tiles() {
    if (on) _tile_loadconfig(&before);
  }
};

inline __m512i upper(__m512i x) { return _mm512_and_epi32(x, _mm512_set1_epi32((int)0xffff0000)); }

// The three parts of 16 numbers, each in the upper half of its lane.
inline void cut(V x, __m512i (&part)[3]) {
  part[0] = upper(bits(x));
  x = sub(x, _mm512_castsi512_ps(part[0]));
  part[1] = upper(bits(x));
  part[2] = upper(bits(sub(x, _mm512_castsi512_ps(part[1]))));
}

inline void turn(__m512i (&r)[16]) {  // transpose [16, 16] of 32 bits
  __m512i t[16];
  for (int i = 0; i < 16; i += 2) t[i] = _mm512_unpacklo_epi32(r[i], r[i + 1]), t[i + 1] = _mm512_unpackhi_epi32(r[i], r[i + 1]);
  for (int i = 0; i < 16; i += 4)
    for (int j = 0; j < 2; j++)
      r[i + 2 * j] = _mm512_unpacklo_epi64(t[i + j], t[i + 2 + j]), r[i + 2 * j + 1] = _mm512_unpackhi_epi64(t[i + j], t[i + 2 + j]);
  for (int j = 0; j < 4; j++) {
    t[j] = _mm512_shuffle_i32x4(r[j], r[j + 4], 0x88), t[j + 4] = _mm512_shuffle_i32x4(r[j], r[j + 4], 0xdd);
    t[j + 8] = _mm512_shuffle_i32x4(r[j + 8], r[j + 12], 0x88), t[j + 12] = _mm512_shuffle_i32x4(r[j + 8], r[j + 12], 0xdd);
  }
  for (int j = 0; j < 4; j++) {
    r[j] = _mm512_shuffle_i32x4(t[j], t[j + 8], 0x88), r[j + 8] = _mm512_shuffle_i32x4(t[j], t[j + 8], 0xdd);
    r[j + 4] = _mm512_shuffle_i32x4(t[j + 4], t[j + 12], 0x88), r[j + 12] = _mm512_shuffle_i32x4(t[j + 4], t[j + 12], 0xdd);
  }
}

// Pack one tile of [n, k] numbers; one of the two strides is 1. `weights`: as pairs along k, else as rows.
inline void pack_tile(const float *x, Int n, Int k, Int row, Int step, bool weights, Half *out) {
  if (step == 1) {
    const __m512i odd = _mm512_set_epi32(
        0x003f003d, 0x003b0039, 0x00370035, 0x00330031, 0x002f002d, 0x002b0029, 0x00270025, 0x00230021,
        0x001f001d, 0x001b0019, 0x00170015, 0x00130011, 0x000f000d, 0x000b0009, 0x00070005, 0x00030001);
    const M low = lanes(k), high = lanes(k - 16);
    for (int i = 0; i < 16; i++, x += row) {
      __m512i a[3], b[3];
      cut(i < n ? load(x, low) : set(0.f), a);
      cut(i < n ? load(x + 16, high) : set(0.f), b);
      for (int p = 0; p < 3; p++) _mm512_store_si512(out + p * PART + i * DEEP, _mm512_permutex2var_epi16(a[p], odd, b[p]));
    }
  } else {
    const M m = lanes(n);
    for (int i = 0; i < 16; i++, x += 2 * step) {
      __m512i a[3], b[3];
      cut(2 * i < k ? load(x, m) : set(0.f), a);
      cut(2 * i + 1 < k ? load(x + step, m) : set(0.f), b);
      for (int p = 0; p < 3; p++)
        _mm512_store_si512(out + p * PART + i * DEEP, _mm512_or_epi32(_mm512_srli_epi32(a[p], 16), b[p]));
    }
  }
  if (weights == (step == 1))
    for (int p = 0; p < 3; p++, out += PART) {
      __m512i r[16];
      for (int i = 0; i < 16; i++) r[i] = _mm512_load_si512(out + i * DEEP);
      turn(r);
      for (int i = 0; i < 16; i++) _mm512_store_si512(out + i * DEEP, r[i]);
    }
}

// Pack [n, K], with its strides, into tiles; with many rows a thread packs tiles `first` to `last`.
inline void pack(const float *x, Int n, Int K, Int row, Int step, bool weights, Half *out, Int first, Int last) {
  for (Int i = first; i < last; i++)
    for (Int k = 0, d = deep(K); k < d; k++)
      pack_tile(x + i * TILE * row + k * DEEP * step, n - i * TILE < TILE ? n - i * TILE : TILE,
                K - k * DEEP < DEEP ? K - k * DEEP : DEEP, row, step, weights, out + (i * d + k) * TRIPLE);
}

// out [16 MR, 16 NR], rows `wide` apart, = tiles a times tiles b over `depth` tiles; `a_next`, `b_next`: strides.
// The data at `ahead` is prefetched into the L2 cache, `lines` of 64 bytes with every sixth of a depth, and meanwhile()
// is called as often: a tile product takes longer than issuing it, and the other units would be idle.
// The compiler's tile intrinsics need register numbers as literals.
#define ROWS_(p) { _tile_loadd(4, a + p * PART, 64); if constexpr (MR > 1) _tile_loadd(5, a + a_next + p * PART, 64); }
#define WEIGHTS_(p) { _tile_loadd(6, b + p * PART, 64); if constexpr (NR > 1) _tile_loadd(7, b + b_next + p * PART, 64); }
#define GO_ \
  { _tile_dpbf16ps(0, 4, 6); if constexpr (NR > 1) _tile_dpbf16ps(1, 4, 7); \
    if constexpr (MR > 1) _tile_dpbf16ps(2, 5, 6); if constexpr (MR > 1 && NR > 1) _tile_dpbf16ps(3, 5, 7); \
    for (Int i = 0; i < lines; i++, ahead += 32) _mm_prefetch((const char *)ahead, _MM_HINT_T1); \
    meanwhile(); }
#define FOUR_(p) \
  { _tile_loadd(5, b + p * PART, 64); _tile_dpbf16ps(0, 4, 5); _tile_loadd(6, b + b_next + p * PART, 64); \
    _tile_dpbf16ps(1, 4, 6); _tile_loadd(7, b + 2 * b_next + p * PART, 64); _tile_dpbf16ps(2, 4, 7); \
    _tile_loadd(5, b + 3 * b_next + p * PART, 64); _tile_dpbf16ps(3, 4, 5); \
    for (Int i = 0; i < 2 * lines; i++, ahead += 32) _mm_prefetch((const char *)ahead, _MM_HINT_T1); \
    meanwhile(); }
template <int MR, int NR, class Meanwhile>
inline void tile_product(const Half *a, Int a_next, const Half *b, Int b_next, Int depth, float *out, Int wide,
                         const Half *ahead, Int lines, Meanwhile &meanwhile) {
  static_assert((MR == 2 && NR <= 2) || (MR == 1 && (NR == 4 || NR <= 2)), "");
  _tile_zero(0); _tile_zero(1); _tile_zero(2); _tile_zero(3);
  for (Int k = 0; k < depth; k++, a += TRIPLE, b += TRIPLE) {
    if constexpr (NR == 4) {
      ROWS_(0) FOUR_(2) FOUR_(1) FOUR_(0) ROWS_(1) FOUR_(1) FOUR_(0) ROWS_(2) FOUR_(0)
    } else {
      ROWS_(0) WEIGHTS_(2) GO_ WEIGHTS_(1) GO_ ROWS_(1) GO_ WEIGHTS_(0) GO_ ROWS_(2) GO_ ROWS_(0) GO_
    }
  }
  _tile_stored(0, out, wide * 4);
  if constexpr (NR > 1) _tile_stored(1, out + 16, wide * 4);
  if constexpr (NR == 4) { _tile_stored(2, out + 32, wide * 4); _tile_stored(3, out + 48, wide * 4); }
  if constexpr (MR > 1) _tile_stored(2, out + 16 * wide, wide * 4);
  if constexpr (MR > 1 && NR > 1) _tile_stored(3, out + 16 * wide + 16, wide * 4);
}
#undef ROWS_
#undef WEIGHTS_
#undef GO_
#undef FOUR_

// Processes finished sums item by item while the next ones are computed.
template <class Item> struct Pending {
  const Item &item;  // item(number)
  Int next = 0, count = 0, each = 1;
  __attribute__((noinline)) void operator()() {
    for (Int i = 0; i < each && next < count; i++) item(next++);
  }
  void rest() {
    while (next < count) item(next++);
  }
  void begin(Int items, Int slots) { next = 0, count = items, each = (items + slots - 1) / slots; }
};

// Sums [n, G 32] of the rows of one pair of tiles and the units of another pair, gate by gate; `ahead`: the weights
// to prefetch, of other units.
template <int G, class Meanwhile>
inline void tiled_sums(const Half *rows, Int n, Int depth, const Half *weights, Int units, const Half *ahead, Int lines,
                       float *sums, Meanwhile &meanwhile) {
  const Int next = depth * TRIPLE;
  for (int g = 0; g < G; g++, weights += units * next, sums += 32) {
    const Half *mine = ahead + g * units * next;
    if (n > TILE && units == 2) tile_product<2, 2>(rows, next, weights, next, depth, sums, 32 * G, mine, lines, meanwhile);
    else if (n > TILE) tile_product<2, 1>(rows, next, weights, 0, depth, sums, 32 * G, mine, lines, meanwhile);
    else if (units == 2 && g + 1 < G) {
      tile_product<1, 4>(rows, 0, weights, next, depth, sums, 32 * G, mine, lines, meanwhile);
      g++, weights += units * next, sums += 32;
    } else if (units == 2) tile_product<1, 2>(rows, 0, weights, next, depth, sums, 32 * G, mine, lines, meanwhile);
    else tile_product<1, 1>(rows, 0, weights, 0, depth, sums, 32 * G, mine, lines, meanwhile);
  }
}

// Call done(row, unit, sums of its gates, 32 apart) for `count` rows of x [.., K], with its strides, times weights of G
// gates of H units, packed in pairs of tiles of units, [pairs, G, 2, ..]. done is called for one block of rows and units
// while the sums of the next are computed. `room`: buffer for the packed rows; `turned`: start with the last units.
template <int G, class F>
inline void tiled(const float *x, Int step, Int inner, Int K, Int count, const Half *weights, Int H, bool turned, Half *room,
                  const F &done) {
  if (!count) return;
  const Int tiles = (count + TILE - 1) / TILE, depth = deep(K), all = (H + TILE - 1) / TILE, blocks = (all + 1) / 2;
  const Int pairs = (tiles + 1) / 2, lines = (16 + pairs - 1) / pairs, size = G * depth * TRIPLE;
  alignas(64) float sums[2][32 * 32 * G];
  Int row = 0, unit = 0, units = 1, side = 0;  // of the block whose sums are finished
  auto item = [&](Int i) { done(row + i / units, unit + i % units * TILE, sums[side] + i / units * 32 * G + i % units * TILE); };
  Pending<decltype(item)> pending{item};
  pack(x, count, K, step, inner, false, room, 0, tiles);
  for (Int block = 0; block < blocks; block++)
    for (Int i = 0; i < tiles; i += 2) {
      const Int j = turned ? 2 * (blocks - 1 - block) : 2 * block;  // the weights used last are still in the cache
      const Int wide = all - j < 2 ? 1 : 2, n = count - i * TILE < 32 ? count - i * TILE : 32;
      const Half *ahead = weights + (turned ? j - 2 : j + 2) * size + i / 2 * lines * 6 * 32 * depth;
      tiled_sums<G>(room + i * depth * TRIPLE, n, depth, weights + j * size, wide, ahead, lines, sums[!side], pending);
      pending.rest();
      row = i * TILE, unit = j * TILE, units = wide, side = !side;
      pending.begin(n * units, 6 * depth * (n > TILE ? G : (G + 1) / 2));
    }
  pending.rest();
}

}  // namespace

#endif
