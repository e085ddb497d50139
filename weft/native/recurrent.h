// One step of a whole search (stepping.h) by a recurrent decoder (nn/decoders/recurrent.py): cells, attention to the
// source, input feeding, the output layer and its softmax. The state of a hypothesis is in [2, B, W, ..]: a step reads
// one half, at its parent, and writes the other.
#pragma once

#include "equations.h"
#include "predict.h"
#include "stepping.h"

enum Cells { LSTM, GRU, SSRU };
enum Score { ADDITIVE, DOT };

struct Cell {
  Int kind, inputs, size;  // I and H
  Dense x, h;              // gates from the input and from h; a GRU's third of h has a bias of its own
  float *first, *second;   // h, and an LSTM's c; of an SSRU c, and NULL
};

struct Recurrent {
  Predict head;
  Dense project;               // to the size of the head; panel is NULL without one
  Int layers, all, beam, kind; // B, W, and the kind of the weights
  Int vector, residual;        // E; whether layers above the first add their input
  const Cell *each;
  double scale;                // of the token vectors
  const float *table;          // [V, E]
  Int early, late;             // whether the context is part of the cells' input (query: h before) and of what is read out
  Int score, inner, context, places;  // A, D and S
  Dense query;                 // of ADDITIVE
  const float *weight;         // [A], of ADDITIVE
  double factor;               // of DOT
  const float *keys, *values;  // [B, S, A] and [B, S, D] with the strides below; NULL without attention
  Int keys_source, keys_place, values_source, values_place;
  const unsigned char *mask;   // [B, S], 0 = padding
  Dense readout;               // of [h; context]; panel is NULL for [h; context] itself
  Int bent, shown, size;       // whether the readout ends with tanh; features before and after it
  float *fed;                  // [2, B, W, size], the last outputs; NULL without input feeding
  Int room;                    // floats of a slab of `rooms`
  float *rooms;                // [slabs, room]
  Int halves;                  // 16-bit elements of a slab of `cut`
  unsigned short *cut;         // [slabs, halves], for rows split for the tiles or rounded; or NULL
};

namespace {

// A step of the rows of a slab.
struct Moving {
  const Recurrent &w;
  const Step &s;
  const Int n;
  const How how;
  float *room;

  float *take(Int floats) { return room += floats, room - floats; }

  // Where a row's part of a state is: that of its parent before this step, and its own after it.
  const float *before(const float *state, Int r, Int size) const {
    const Int slot = s.number[r / s.width] * w.beam + s.parent[r];
    return state + ((1 - (s.time & 1)) * w.all * w.beam + slot) * size;
  }
  float *after(float *state, Int r, Int size) const {
    const Int slot = s.number[r / s.width] * w.beam + r % s.width;
    return state + ((s.time & 1) * w.all * w.beam + slot) * size;
  }

  void store_to(const Dense &by, Int K, Int O, const float *x, float *y, Int apart, bool bent = false) const {
    dense(by, n, K, O, x, K, how, [&](Int r, Int u, M m, V v) { store(y + r * apart + u, m, bent ? tangent(v) : v); });
  }

  void contexts(const float *query, float *out, Int apart);
  void cell(const Cell &c, const float *x, float *y);
  const float *step();
};

// Energies of a query q [A] with the keys of a source, as weights that sum to one.
inline void weigh(const Recurrent &w, Int b, const float *q, float *energy) {
  float top = -INFINITY;
  for (Int p = 0; p < w.places; p++) {
    if (w.mask && !w.mask[b * w.places + p]) {
      energy[p] = -INFINITY;
      continue;
    }
    const float *k = w.keys + b * w.keys_source + p * w.keys_place;
    V sum = set(0.f);
    for (Int u = 0; u < w.inner; u += W) {
      const M m = lanes(w.inner - u);  // lanes past the end have weight zero
      const V x = load(q + u, m), y = load(k + u, m);
      sum = w.score == ADDITIVE ? fma(load(w.weight + u, m), tangent(add(x, y)), sum) : fma(x, y, sum);
    }
    energy[p] = total(sum) * (float)w.factor;
    top = energy[p] > top ? energy[p] : top;
  }
  const float all = sum_of_powers(energy, w.places, top, [&](Int i, M m, V e) { store(energy + i, m, e); });
  for (Int p = 0; p < w.places; p++) energy[p] = w.mask && !w.mask[b * w.places + p] ? 0 : energy[p] / all;
}

// The context of each row's query [n, H], into rows of `out`.
inline void Moving::contexts(const float *query, float *out, Int apart) {
  const Int H = w.each[w.layers - 1].size;
  float *energy = take(w.places), *asked = take(n * w.inner);
  if (w.score == ADDITIVE) store_to(w.query, H, w.inner, query, asked, w.inner), query = asked;
  for (Int r = 0; r < n; r++) {
    const Int b = s.number[r / s.width];
    weigh(w, b, query + r * w.inner, energy);
    float *y = out + r * apart;
    for (Int u = 0; u < w.context; u += W) {
      const M m = lanes(w.context - u);
      V sum = set(0.f);
      for (Int p = 0; p < w.places; p++)
        if (energy[p] != 0.f) sum = fma(set(energy[p]), load(w.values + b * w.values_source + p * w.values_place + u, m), sum);
      store(y + u, m, sum);
    }
  }
}

// One cell: x [n, I] to y [n, H], and its state.
inline void Moving::cell(const Cell &c, const float *x, float *y) {
  const Int H = c.size, G = c.kind == LSTM ? 4 * H : c.kind == GRU ? 3 * H : 2 * H;
  float *was = room, *z = was + n * H, *zh = z + n * G;  // given back afterwards
  for (Int r = 0; r < n; r++) memcpy(was + r * H, before(c.first, r, H), H * sizeof(float));
  store_to(c.x, c.inputs, G, x, z, G);
  if (c.kind == LSTM)
    dense(c.h, n, H, G, was, H, how, [&](Int r, Int u, M m, V v) { store(z + r * G + u, m, add(load(z + r * G + u, m), v)); });
  if (c.kind == GRU) store_to(c.h, H, G, was, zh, G);
  for (Int r = 0; r < n; r++, z += G, zh += G) {
    float *first = after(c.first, r, H), *second = c.second ? after(c.second, r, H) : nullptr;
    const float *past = c.second ? before(c.second, r, H) : was + r * H;
    for (Int u = 0; u < H; u += W) {
      const M m = lanes(H - u);
      auto gate = [&](const float *from, Int g) { return load(from + g * H + u, m); };
      const V held = load(past + u, m);
      V kept, shown;
      if (c.kind == LSTM) {
        const LSTMStep now = lstm(gate(z, 0), gate(z, 1), gate(z, 2), gate(z, 3), held);
        store(second + u, m, now.c);
        kept = shown = now.h;
      } else if (c.kind == GRU) {
        kept = shown = gru(add(gate(z, 0), gate(zh, 0)), add(gate(z, 1), gate(zh, 1)), gate(z, 2), gate(zh, 2), held).h;
      } else {
        kept = mixed(sigmoid(gate(z, 0)), held, gate(z, 1));
        shown = most(set(0.f), kept);
      }
      store(first + u, m, kept), store(y + r * H + u, m, shown);
    }
  }
}

// All of a step before the output layer; gives y [n, size].
inline const float *Moving::step() {
  const Cell &last = w.each[w.layers - 1];
  const Int H = last.size, I = w.each[0].inputs, E = w.vector;
  float *x = take(n * I), *read = take(n * w.shown), *y = take(n * w.size);
  float *const mine = room;
  for (Int r = 0; r < n; r++) {
    const float *vector = w.table + s.token[r] * E;
    for (Int u = 0; u < E; u += W) store(x + r * I + u, lanes(E - u), mul(load(vector + u, lanes(E - u)), set((float)w.scale)));
    if (w.fed) memcpy(x + r * I + I - w.size, before(w.fed, r, w.size), w.size * sizeof(float));
  }
  if (w.early) {
    float *query = take(n * H);
    for (Int r = 0; r < n; r++)
      for (Int u = 0; u < H; u += W) {
        const V h = load(before(last.first, r, H) + u, lanes(H - u));
        store(query + r * H + u, lanes(H - u), last.kind == SSRU ? most(set(0.f), h) : h);
      }
    contexts(query, x + E, I);
    if (w.late)
      for (Int r = 0; r < n; r++) memcpy(read + r * w.shown + H, x + r * I + E, w.context * sizeof(float));
    room = mine;
  }
  float *below = x, *above = nullptr;
  for (Int j = 0; j < w.layers; j++) {
    const Cell &c = w.each[j];
    above = take(n * c.size);
    cell(c, below, above);
    for (Int i = 0; w.residual && j && i < n * c.size; i++) above[i] += below[i];
    below = above;
  }
  for (Int r = 0; r < n; r++) memcpy(read + r * w.shown, above + r * H, H * sizeof(float));
  if (w.late && !w.early) contexts(above, read + H, w.shown);
  room = mine;
  const float *found = read;
  if (w.readout.panel) store_to(w.readout, w.shown, w.size, read, y, w.size, w.bent), found = y;
  if (w.fed)
    for (Int r = 0; r < n; r++) memcpy(after(w.fed, r, w.size), found + r * w.size, w.size * sizeof(float));
  return found;
}

}  // namespace

API void weft_write_recurrent(const void *model, const Step *step) {
  const Recurrent &w = *(const Recurrent *)model;
  const Int n = step->sources * step->width;
  Moving moving = {w, *step, n, {w.kind, w.cut ? w.cut + step->slab * w.halves : nullptr}, w.rooms + step->slab * w.room};
  const float *y;
  {
    const Tiled here(w.cut);
    y = moving.step();
  }
  predict_step(w.head, w.project, *step, y, w.size, moving.room);
}
