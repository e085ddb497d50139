// Dropout of a whole tensor in one pass, with the sum that often follows it: y = onto + keep scale x, on the CPU in float32.
// The numbers are hashes of places and a key, so nothing is kept for the backward pass, which is the same function.
//
// Plain C interface, compiled like cells.cpp.
#include "common.h"

struct Drop {
  Int count, slabs;
  Int key;    // two words of 32 bits
  Int level;  // -32768..32767: a number below it drops
  double scale;
  const float *x, *onto;  // onto: NULL for none
  float *y;
};

namespace {

typedef unsigned Word;
constexpr Int GROUP = 32;  // places that share 16 hashes: hash i has the number of place i below, that of 16 + i above

// triple32 of Chris Wellons, with a second word of the key added after its first product; as `_hashes` in kernels/dropout.py.
inline Word hash(Word n, Word first, Word second) {
  n += first;
  n = (n ^ n >> 17) * 0xed5ad4bbu + second;
  n = (n ^ n >> 11) * 0xac4c1b51u;
  n = (n ^ n >> 15) * 0x31848babu;
  return n ^ n >> 14;
}

inline void slab(const Drop &p, Int s) {
  const Int groups = (p.count + GROUP - 1) / GROUP;
  const Word low = (Word)p.key, high = (Word)((unsigned long long)p.key >> 32);
  const float scale = (float)p.scale;
  const int level = (int)p.level;
  for (Int g = groups * s / p.slabs; g < groups * (s + 1) / p.slabs; g++) {
    const Int at = g * GROUP;
    float factor[GROUP];
    for (int i = 0; i < 16; i++) {
      const Word n = hash((Word)(at / 2 + i), low, high);
      factor[i] = (int)(n << 16) >> 16 >= level ? scale : 0.f;
      factor[16 + i] = (int)n >> 16 >= level ? scale : 0.f;
    }
    const Int end = p.count - at < GROUP ? p.count - at : GROUP;
    if (end == GROUP && p.onto) for (int i = 0; i < GROUP; i++) p.y[at + i] = p.x[at + i] * factor[i] + p.onto[at + i];
    else if (end == GROUP) for (int i = 0; i < GROUP; i++) p.y[at + i] = p.x[at + i] * factor[i];
    else for (Int i = 0; i < end; i++) p.y[at + i] = p.x[at + i] * factor[i] + (p.onto ? p.onto[at + i] : 0.f);
  }
}

}  // namespace

API Int weft_dropping_version() { return 1; }  // version of the struct above; must equal VERSIONS in jobs.py
API void weft_drop(const Drop *work, Start start) { run<Drop, slab>(work, start); }
