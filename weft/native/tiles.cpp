// The linear product on tiles: y = x W^T + b in float32, see tiles.h. Needs a compiler and a processor with AMX.
#include "narrow.h"

#include <sys/syscall.h>
#include <unistd.h>

struct Product {
  Int rows, inputs, outputs, slabs;
  Int x_row, x_step, w_row, w_step, y_row;  // in each (row, step) pair of x and w one is 1
  const float *x, *w, *bias;                // [N, K], [O, K], [O] or NULL
  unsigned short *packed;                   // buffer for W, packed_size(O, K)
  unsigned short *room;                     // buffer [slabs, ROOM]
  float *y;                                 // [N, O]
};

namespace {

// The block that stays in the L2 cache: this much depth, and as many rows as fit.
constexpr Int CHUNK = 512, ROOM = 12 * (CHUNK / DEEP) * TRIPLE;

inline Int less(Int a, Int b) { return a < b ? a : b; }

// Pack W in chunks of depth, one after the other.
inline void pack_slab(const Product &p, Int s) {
  const Int all = (p.outputs + TILE - 1) / TILE;
  for (Int k = 0; k < p.inputs; k += CHUNK)
    pack(p.w + k * p.w_step, p.outputs, less(CHUNK, p.inputs - k), p.w_row, p.w_step, true,
         p.packed + all * k / DEEP * TRIPLE, all * s / p.slabs, all * (s + 1) / p.slabs);
}

inline void product_slab(const Product &p, Int s) {
  const Tiles here;
  const Int all = (p.outputs + TILE - 1) / TILE, high = (p.rows + TILE - 1) / TILE;
  const Int last = less(high * (s + 1) / p.slabs * TILE, p.rows);
  const Int group = ROOM / (less(deep(p.inputs), deep(CHUNK)) * TRIPLE) / 2 * 2 * TILE;
  for (Int from = high * s / p.slabs * TILE; from < last; from += group)
    for (Int k = 0; k < p.inputs; k += CHUNK)
      tiled<1>(p.x + from * p.x_row + k * p.x_step, p.x_row, p.x_step, less(CHUNK, p.inputs - k), less(group, last - from),
               p.packed + all * k / DEEP * TRIPLE, p.outputs, false, p.room + s * ROOM,
               [&](Int r, Int u, const float *sums) {
                 const M m = lanes(p.outputs - u);
                 float *y = p.y + (from + r) * p.y_row + u;
                 const V sum = whole(sums);
                 store(y, m, k ? add(sum, load(y, m)) : p.bias ? add(sum, load(p.bias + u, m)) : sum);
               });
}

// Whether the processor has AMX-BF16, AMX-TILE and AMX-INT8 (CPUID leaf 7, EDX bits 22, 24 and 25), and what narrow.h needs.
inline bool has_tiles() {
  unsigned a, b, c, d;
  return __get_cpuid_count(7, 0, &a, &b, &c, &d) && (d >> 22 & d >> 24 & d >> 25 & 1) && narrow_allowed();
}

}  // namespace

API Int weft_tiles_version() { return 4; }  // version of the struct above; must equal VERSION in jobs.py
API Int weft_tiles_allowed() { return has_tiles() && syscall(SYS_arch_prctl, 0x1023, 18) == 0; }  // Linux enables tiles on request
API Int weft_tiles_room(Int n, Int K) { return packed_size(n, K); }
API Int weft_tiles_group() { return ROOM; }
API void weft_tiles_pack(const Product *work, Start start) { run<Product, pack_slab>(work, start); }
API void weft_tiles_product(const Product *work, Start start) { run<Product, product_slab>(work, start); }
