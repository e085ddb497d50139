// One search step on the CPU: all layers of a Transformer decoder in one call (layers.h), and an output layer (predict.h);
// the same and what is around them as one step of a whole search (writing.h, recurrent.h); and all layers of an encoder.
//
// Plain C interface, compiled like cells.cpp; with tiles (tiles.h) for enough rows.
#include "recurrent.h"
#include "writing.h"

API Int weft_decoding_version() { return 6; }  // version of the structs above; must equal VERSIONS in jobs.py
#if defined(NARROW)
API Int weft_narrow_allowed() { return narrow_allowed(); }
#endif
API Int weft_narrow_rows(Int kind, Int n, Int K) { return 2 * narrow_rows_size(kind, n, K); }      // 16-bit elements
API Int weft_narrow_panel(Int kind, Int O, Int K) { return 2 * narrow_panel_size(kind, O, K); }  // 16-bit elements
API void weft_narrow_pack(Int kind, Int O, Int K, const float *weight, unsigned *out) { narrow_pack(kind, O, K, weight, out); }
API void weft_multiply(const Predict *work, Start start) { run<Predict, multiply_slab>(work, start); }
API void weft_predict(const Predict *work, Start start) { run<Predict, predict_slab>(work, start); }
API void weft_decode(const Decode *work, Start start) { run<Decode, slab>(work, start); }
