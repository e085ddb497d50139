// One step of a whole search (stepping.h) by a Transformer decoder, or one with SSRUs in place of self-attention: token
// vectors and positions, all layers, the output layer and its softmax.
#pragma once

#include "layers.h"
#include "predict.h"
#include "stepping.h"

struct Writer {
  Decode layers;           // what all steps share; the rest is set here
  Predict head;            // likewise
  Dense project;           // to the size of the head, which is at most four times D; panel is NULL without one
  Norm entry;              // of the layers' input; gain is NULL without one
  double scale;            // of the token vectors
  const float *table;      // [V, D]
  const float *positions;  // [steps, D], from the first written position on
  Int first;               // E, entries of the caches before the first step
  Int path_row;            // E + steps
  Int *paths;              // [2, B, W, path_row], the entries of each hypothesis; the first E are set
  Int room;                // floats of a slab of `rooms`
  float *rooms;            // [slabs, room]: x [N, D], parents [N] (Int), and `room` of Decode
};

namespace {

// Token vectors times the scale plus the position, for all rows.
inline void enter(const Writer &w, const Step &s, Int n, float *x) {
  const Int D = w.layers.size;
  const V scale = set((float)w.scale);
  const float *position = w.positions + s.time * D;
  for (Int r = 0; r < n; r++, x += D) {
    const float *vector = w.table + s.token[r] * D;
    for (Int u = 0; u < D; u += W) {
      const M m = lanes(D - u);
      store(x + u, m, add(mul(load(vector + u, m), scale), load(position + u, m)));
    }
  }
}

// The path of each hypothesis: its parent's, and the entry that it writes now.
inline void follow(const Writer &w, const Step &s, Int entries) {
  const Int beam = w.layers.beam, half = w.layers.all * beam * w.path_row, past = w.first + s.time;
  Int *to = w.paths + (s.time & 1) * half;
  const Int *from = w.paths + (1 - (s.time & 1)) * half;
  for (Int i = 0; i < s.sources; i++)
    for (Int j = 0; j < s.width; j++) {
      const Int slot = s.number[i] * beam;
      Int *path = to + (slot + j) * w.path_row;
      memcpy(path, from + (slot + s.parent[i * s.width + j]) * w.path_row, past * sizeof(Int));
      path[past] = entries + j;
    }
}

}  // namespace

API void weft_write(const void *model, const Step *step) {
  const Writer &w = *(const Writer *)model;
  const Step &s = *step;
  const Int n = s.sources * s.width;
  Decode d = w.layers;
  d.rows = n, d.sources = s.sources, d.slabs = 1;
  d.entries = w.first + (s.time ? 1 + (s.time - 1) * s.width : 0), d.positions = w.first + s.time + 1;
  d.numbers = s.number, d.parents = s.parent, d.side = s.time & 1;
  if (d.cut) d.cut += s.slab * d.halves;
  d.x = w.rooms + s.slab * w.room, d.room = d.x + n * d.size;
  if (d.beam > 1 && w.paths) {
    follow(w, s, d.entries);
    d.path = w.paths + d.side * d.all * d.beam * w.path_row, d.path_row = w.path_row;
  }
  enter(w, s, n, d.x);
  if (w.entry.gain) norm(d, w.entry, n, d.x, d.x);
  {
    const Tiled here(d.cut);
    sources(d, 0, 0, d.sources);
  }
  predict_step(w.head, w.project, s, d.x, d.size, d.room);
}
