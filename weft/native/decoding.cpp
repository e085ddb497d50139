// One search step on the CPU: all layers of a Transformer decoder in one call (layers.h), and an output layer (predict.h);
// the same and what is around them as one step of a whole search (writing.h, recurrent.h); and all layers of an encoder. Without
// instructions for bfloat16, torch computes the output layer's products in it, and this file its softmax.
//
// Plain C interface, compiled like cells.cpp; with tiles (tiles.h) for enough rows.
#include "recurrent.h"
#include "writing.h"

// log softmax(z + b) of bfloat16 logits z: each row is read once and kept in the L1 cache as floats.
struct Soften {
  Int rows, classes, slabs;
  const unsigned short *logits;  // [N, V]
  const float *bias;             // [V]
  float *logp;                   // [N, V]
};

namespace {

inline void soften_slab(const Soften &p, Int s) {
  for (Int r = p.rows * s / p.slabs; r < p.rows * (s + 1) / p.slabs; r++) {
    const unsigned short *z = p.logits + r * p.classes;
    float *logp = p.logp + r * p.classes;
    for (Int i = 0; i < p.classes; i++) logp[i] = widened(z[i]) + p.bias[i];
    log_softmax(logp, p.classes);
  }
}

}  // namespace

API Int weft_decoding_version() { return 6; }  // version of the structs above; must equal VERSIONS in jobs.py
#if defined(NARROW)
API Int weft_narrow_allowed() { return narrow_allowed(); }
#endif
API Int weft_narrow_rows(Int kind, Int n, Int K) { return 2 * narrow_rows_size(kind, n, K); }      // 16-bit elements
API Int weft_narrow_panel(Int kind, Int O, Int K) { return 2 * narrow_panel_size(kind, O, K); }  // 16-bit elements
API void weft_narrow_pack(Int kind, Int O, Int K, const float *weight, unsigned *out) { narrow_pack(kind, O, K, weight, out); }
API void weft_soften(const Soften *work, Start start) { run<Soften, soften_slab>(work, start); }
API void weft_multiply(const Predict *work, Start start) { run<Predict, multiply_slab>(work, start); }
API void weft_predict(const Predict *work, Start start) { run<Predict, predict_slab>(work, start); }
API void weft_decode(const Decode *work, Start start) { run<Decode, slab>(work, start); }
