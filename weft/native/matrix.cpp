// The recurrences of C13 with a matrix per head, all steps on the CPU, float32 (nn/kernels/matrix.py).
//
//   S_t = diag(a_t) S_{t-1} + w_t (e_t^T S_{t-1}) + k_t v_t^T,  o_t = S_t^T q_t;  w_t = k_t without w, no e: no such term
//
// The columns of S are independent, apart from the gradients of what all of them share. Forward, a register holds columns
// of one row of S; backward, where those gradients are sums over columns, rows of one column. The backward pass starts
// each chunk from its stored first state and computes the chunk's states again.
#include "common.h"

constexpr int CHUNK = 16;  // steps between stored states

struct Matrix {
  Int T, B, H, K, V, decays, slabs, room_size;  // decays: 1 or K
  const Int *bounds;                            // [slabs + 1], of B * H matrices
  const Int *strides;                           // [6, 3]: row, step, head of q, k, v, a, e, w
  const float *q, *k, *v, *a, *e, *w;           // [B, T, H, K], v [B, T, H, V], a [B, T, H, decays]; e, w or NULL
  float *s;                                     // [B, H, K, V]: in, the first state; out, the last
  float *kept;                                  // [B * H, ceil(T / CHUNK), K, V], the state before each chunk, or NULL
  float *found;                                 // e_t^T S_{t-1} [B, T, H, V], or NULL
  float *o;                                     // [B, T, H, V]
  float *room;                                  // [slabs, room_size]
};

struct MatrixBack {
  Matrix f;  // with kept, found
  Int slabs;
  const float *dO;                  // [B, T, H, V]
  float *ds;                        // [B, H, K, V]: in, gradient of the last state; out, of the first
  float *dq, *dk, *dv, *da, *de, *dw;  // dense, as their tensors
};

namespace {

enum Kind { DECAYED, REPLACED, CORRECTED };
enum Input { Q, KEY, VALUE, DECAY, ERASE, WRITE };

const float *at(const Matrix &f, Input which, Int row, Int t, Int head) {
  const float *tensors[] = {f.q, f.k, f.v, f.a, f.e, f.w};
  const Int *stride = f.strides + 3 * which;
  return tensors[which] + row * stride[0] + t * stride[1] + head * stride[2];
}

inline void put(float *p, V v) { memcpy(p, &v, sizeof v); }  // a masked store, even of all lanes, is slow on Zen
inline void put_some(float *p, Int count, V v) { count < W ? store(p, lanes(count), v) : put(p, v); }

constexpr int COLUMNS = W == 16 ? 4 : 2;  // registers of a row of S

template <int N, int KIND> void columns_forward(const Matrix &f, Int row, Int head, Int column, float *block) {
  const Int K = f.K, V_ = f.V, chunks = (f.T + CHUNK - 1) / CHUNK, matrix = row * f.H + head;
  const Int width = (V_ - column < N * W ? V_ - column : N * W) * sizeof(float);
  const bool each = f.decays > 1;
  M m[N];
  for (int n = 0; n < N; n++) m[n] = lanes(V_ - column - n * W);
  float *s = f.s + matrix * K * V_ + column;
  V found[N], o[N], v[N], by_key[N];
  for (int n = 0; n < N; n++) found[n] = set(0.f);
  const float *e = KIND != DECAYED ? at(f, ERASE, row, 0, head) : nullptr;
  for (Int i = 0; i < K; i++)
    for (int n = 0; n < N; n++) {
      const V held = load(s + i * V_ + n * W, m[n]);
      put(block + (i * N + n) * W, held);
      if (KIND != DECAYED) found[n] = fma(set(e[i]), held, found[n]);
    }
  for (Int t = 0; t < f.T; t++) {
    if (f.kept && t % CHUNK == 0) {
      float *kept = f.kept + (matrix * chunks + t / CHUNK) * K * V_ + column;
      for (Int i = 0; i < K; i++) memcpy(kept + i * V_, block + i * N * W, width);
    }
    const Int out = ((row * f.T + t) * f.H + head) * V_ + column;
    const float *q = at(f, Q, row, t, head), *k = at(f, KEY, row, t, head), *a = at(f, DECAY, row, t, head);
    const float *w = KIND == CORRECTED ? at(f, WRITE, row, t, head) : nullptr;
    if (KIND != DECAYED && t + 1 < f.T) e = at(f, ERASE, row, t + 1, head);  // the next step's, for S of this one
    for (int n = 0; n < N; n++) {
      v[n] = load(at(f, VALUE, row, t, head) + column + n * W, m[n]);
      if (KIND != DECAYED && f.found) put_some(f.found + out + n * W, V_ - column - n * W, found[n]);
      by_key[n] = KIND == REPLACED ? add(v[n], found[n]) : v[n];
      v[n] = found[n];
      found[n] = o[n] = set(0.f);
    }
    for (Int i = 0; i < K; i++) {
      const V kept = set(a[each ? i : 0]), key = set(k[i]), query = set(q[i]);
      const V writes = KIND == CORRECTED ? set(w[i]) : key, erases = KIND != DECAYED ? set(e[i]) : key;
      for (int n = 0; n < N; n++) {
        float *here = block + (i * N + n) * W;
        V held = fma(kept, whole(here), mul(key, by_key[n]));
        if (KIND == CORRECTED) held = fma(writes, v[n], held);
        put(here, held);
        o[n] = fma(query, held, o[n]);
        if (KIND != DECAYED) found[n] = fma(erases, held, found[n]);
      }
    }
    for (int n = 0; n < N; n++) put_some(f.o + out + n * W, V_ - column - n * W, o[n]);
  }
  for (Int i = 0; i < K; i++) memcpy(s + i * V_, block + i * N * W, width);
}

template <int KIND> void forward(const Matrix &f, Int row, Int head, float *block) {
  Int column = 0;
  for (; column + COLUMNS * W <= f.V; column += COLUMNS * W) columns_forward<COLUMNS, KIND>(f, row, head, column, block);
  for (; column + W < f.V; column += 2 * W) columns_forward<2, KIND>(f, row, head, column, block);
  if (column < f.V) columns_forward<1, KIND>(f, row, head, column, block);
}

// Lane r is the sum of the W floats of row r of p [W, W].
inline V sums(const float *p) {
#if defined(__AVX512F__)
  V x[8], y[4], z[2];
  for (int i = 0; i < 8; i++) {
    const V a = whole(p + 2 * i * W), b = whole(p + (2 * i + 1) * W);
    x[i] = add(_mm512_unpacklo_ps(a, b), _mm512_unpackhi_ps(a, b));
  }
  for (int i = 0; i < 4; i++) {
    const __m512d a = _mm512_castps_pd(x[2 * i]), b = _mm512_castps_pd(x[2 * i + 1]);
    y[i] = add(_mm512_castpd_ps(_mm512_unpacklo_pd(a, b)), _mm512_castpd_ps(_mm512_unpackhi_pd(a, b)));
  }
  for (int i = 0; i < 2; i++)
    z[i] = add(_mm512_shuffle_f32x4(y[2 * i], y[2 * i + 1], 0x44), _mm512_shuffle_f32x4(y[2 * i], y[2 * i + 1], 0xEE));
  return add(_mm512_shuffle_f32x4(z[0], z[1], 0x88), _mm512_shuffle_f32x4(z[0], z[1], 0xDD));
#else
  V x[2];
  for (int i = 0; i < 2; i++, p += 4 * W)
    x[i] = _mm256_hadd_ps(_mm256_hadd_ps(whole(p), whole(p + W)), _mm256_hadd_ps(whole(p + 2 * W), whole(p + 3 * W)));
  return add(_mm256_permute2f128_ps(x[0], x[1], 0x20), _mm256_permute2f128_ps(x[0], x[1], 0x31));
#endif
}

constexpr int PAIR = 2 * W;  // rows of S in the registers of a column

enum Shared { DQ, DKEY, DDECAY, DERASE, DWRITE, SHARED };

struct Room {
  Int size;  // K, rounded up to PAIR
  float *ds, *states, *shared, *parts;  // [V, size], [CHUNK + 1, W, size], [CHUNK, SHARED, size], [2, W, W]
  Room(const Matrix &f, float *room) : size((f.K + PAIR - 1) / PAIR * PAIR), ds(room) {
    states = ds + f.V * size, shared = states + (CHUNK + 1) * W * size, parts = shared + CHUNK * SHARED * size;
  }
};

struct Step {  // the addresses of a step's vectors, and two masks for each PAIR
  const float *q, *k, *a, *e, *w, *v, *found;
  Step(const Matrix &f, Int row, Int t, Int head, Int column, int kind)
      : q(at(f, Q, row, t, head)), k(at(f, KEY, row, t, head)), a(at(f, DECAY, row, t, head)),
        e(kind == DECAYED ? nullptr : at(f, ERASE, row, t, head)), w(kind == CORRECTED ? at(f, WRITE, row, t, head) : k),
        v(at(f, VALUE, row, t, head) + column), found(f.found + ((row * f.T + t) * f.H + head) * f.V + column) {}
};

inline void two(const float *p, Int i, Int K, V *x) { x[0] = load(p + i, lanes(K - i)), x[1] = load(p + i + W, lanes(K - i - W)); }

inline void decay(const float *a, Int i, const Matrix &f, V *x) {
  if (f.decays > 1) two(a, i, f.K, x);
  else x[0] = x[1] = set(a[0]);
}

inline void more(float *p, const V *x) { put(p, add(whole(p), x[0])), put(p + W, add(whole(p + W), x[1])); }

// S_t of `count` columns from S_{t-1}.
template <int KIND> void again(const Matrix &f, const Step &x, Int count, Int size, const float *before, float *after) {
  for (Int i = 0; i < f.K; i += PAIR) {
    V a[2], k[2], w[2];
    decay(x.a, i, f, a), two(x.k, i, f.K, k), two(x.w, i, f.K, w);
    for (Int r = 0; r < count; r++) {
      const V v = set(KIND == REPLACED ? x.v[r] + x.found[r] : x.v[r]);
      for (int n = 0; n < 2; n++) {
        V held = fma(a[n], whole(before + r * size + i + n * W), mul(k[n], v));
        if (KIND == CORRECTED) held = fma(w[n], set(x.found[r]), held);
        put(after + r * size + i + n * W, held);
      }
    }
  }
}

// What the output and the entering value ask of S_t: dS_t, and gradients of q, k, w, v and e^T S_{t-1}.
template <int KIND>
void entering(const Matrix &f, const Step &x, Int count, const Room &room, const float *dO, float *ds, const float *after,
              float *shared) {
  for (Int i = 0; i < f.K; i += PAIR) {
    V q[2], k[2], w[2], dq[2], dk[2], dw[2];
    two(x.q, i, f.K, q), two(x.k, i, f.K, k), two(x.w, i, f.K, w);
    for (int n = 0; n < 2; n++) dq[n] = dk[n] = dw[n] = set(0.f);
    for (Int r = 0; r < count; r++) {
      const V d_out = set(dO[r]), v = set(KIND == REPLACED ? x.v[r] + x.found[r] : x.v[r]);
      V by_key = i ? whole(room.parts + r * W) : set(0.f), by_write = i ? whole(room.parts + (W + r) * W) : set(0.f);
      for (int n = 0; n < 2; n++) {
        float *here = ds + r * room.size + i + n * W;
        const V d = fma(q[n], d_out, whole(here));
        put(here, d);
        dq[n] = fma(whole(after + r * room.size + i + n * W), d_out, dq[n]);
        dk[n] = fma(d, v, dk[n]);
        by_key = fma(d, k[n], by_key);
        if (KIND == CORRECTED) dw[n] = fma(d, set(x.found[r]), dw[n]), by_write = fma(d, w[n], by_write);
      }
      put(room.parts + r * W, by_key);
      if (KIND == CORRECTED) put(room.parts + (W + r) * W, by_write);
    }
    more(shared + DQ * room.size + i, dq), more(shared + DKEY * room.size + i, dk);
    if (KIND == CORRECTED) more(shared + DWRITE * room.size + i, dw);
  }
}

// dS_{t-1} from dS_t, and gradients of a and e.
template <int KIND>
void leaving(const Matrix &f, const Step &x, Int count, const Room &room, const float *dfound, float *ds,
             const float *before, float *shared) {
  for (Int i = 0; i < f.K; i += PAIR) {
    V a[2], e[2], da[2], de[2];
    decay(x.a, i, f, a);
    if (KIND != DECAYED) two(x.e, i, f.K, e);
    for (int n = 0; n < 2; n++) da[n] = de[n] = set(0.f);
    for (Int r = 0; r < count; r++) {
      const V d_found = set(dfound[r]);
      for (int n = 0; n < 2; n++) {
        float *here = ds + r * room.size + i + n * W;
        const V d = whole(here), held = whole(before + r * room.size + i + n * W);
        da[n] = fma(d, held, da[n]);
        if (KIND != DECAYED) de[n] = fma(held, d_found, de[n]);
        put(here, KIND == DECAYED ? mul(a[n], d) : fma(a[n], d, mul(e[n], d_found)));
      }
    }
    more(shared + DDECAY * room.size + i, da);
    if (KIND != DECAYED) more(shared + DERASE * room.size + i, de);
  }
}

void write(const MatrixBack &g, const Room &room, Int row, Int head, Int begin, Int steps, int kind) {
  const Matrix &f = g.f;
  float *outs[] = {g.dq, g.dk, g.da, g.de, g.dw};
  for (Int s = 0; s < steps; s++) {
    const Int place = (row * f.T + begin + s) * f.H + head;
    for (int n = 0; n < (kind == CORRECTED ? SHARED : kind == REPLACED ? DWRITE : DERASE); n++) {
      const float *sum = room.shared + (s * SHARED + n) * room.size;
      if (n == DDECAY && f.decays == 1) {
        g.da[place] = 0.f;
        for (Int i = 0; i < f.K; i++) g.da[place] += sum[i];
      } else
        memcpy(outs[n] + place * f.K, sum, f.K * sizeof(float));
    }
  }
}

template <int KIND> void backward(const MatrixBack &g, Int row, Int head, const Room &room) {
  const Matrix &f = g.f;
  const Int chunks = (f.T + CHUNK - 1) / CHUNK, matrix = row * f.H + head, wide = W * room.size;
  float *ds = g.ds + matrix * f.K * f.V;
  for (Int i = 0; i < room.size; i++)  // behind the rows there may be NaN of the matrix before
    for (Int c = 0; c < f.V; c++) room.ds[c * room.size + i] = i < f.K ? ds[i * f.V + c] : 0.f;
  for (Int chunk = chunks - 1; chunk >= 0; chunk--) {
    const Int begin = chunk * CHUNK, steps = begin + CHUNK < f.T ? CHUNK : f.T - begin;
    memset(room.shared, 0, steps * SHARED * room.size * sizeof(float));
    for (Int column = 0; column < f.V; column += W) {
      const Int count = column + W < f.V ? W : f.V - column;
      const float *kept = f.kept + (matrix * chunks + chunk) * f.K * f.V + column;
      for (Int i = 0; i < f.K; i++)
        for (Int r = 0; r < count; r++) room.states[r * room.size + i] = kept[i * f.V + r];
      for (Int s = 0; s < steps; s++)
        again<KIND>(f, Step(f, row, begin + s, head, column, KIND), count, room.size, room.states + s * wide,
                    room.states + (s + 1) * wide);
      for (Int s = steps - 1; s >= 0; s--) {
        const Step x(f, row, begin + s, head, column, KIND);
        const Int out = ((row * f.T + begin + s) * f.H + head) * f.V + column;
        float *here = room.ds + column * room.size, *shared = room.shared + s * SHARED * room.size, dfound[W];
        entering<KIND>(f, x, count, room, g.dO + out, here, room.states + (s + 1) * wide, shared);
        const V by_key = sums(room.parts);
        put_some(g.dv + out, count, by_key);
        put(dfound, KIND == CORRECTED ? sums(room.parts + W * W) : by_key);
        leaving<KIND>(f, x, count, room, dfound, here, room.states + s * wide, shared);
      }
    }
    write(g, room, row, head, begin, steps, KIND);
  }
  for (Int i = 0; i < f.K; i++)
    for (Int c = 0; c < f.V; c++) ds[i * f.V + c] = room.ds[c * room.size + i];
}

void slab(const Matrix &f, Int s) {
  float *block = f.room + s * f.room_size;
  for (Int n = f.bounds[s]; n < f.bounds[s + 1]; n++) {
    const Int row = n / f.H, head = n % f.H;
    !f.e ? forward<DECAYED>(f, row, head, block) : !f.w ? forward<REPLACED>(f, row, head, block) : forward<CORRECTED>(f, row, head, block);
  }
}

void slab(const MatrixBack &g, Int s) {
  const Matrix &f = g.f;
  const Room room(f, f.room + s * f.room_size);
  for (Int n = f.bounds[s]; n < f.bounds[s + 1]; n++) {
    const Int row = n / f.H, head = n % f.H;
    !f.e ? backward<DECAYED>(g, row, head, room) : !f.w ? backward<REPLACED>(g, row, head, room) : backward<CORRECTED>(g, row, head, room);
  }
}

}  // namespace

API Int weft_matrix_version() { return 4; }  // version of the structs above; must equal VERSION in jobs.py
API void weft_matrix_forward(const Matrix *f, Start start) { run<Matrix, slab>(f, start); }
API void weft_matrix_backward(const MatrixBack *g, Start start) { run<MatrixBack, slab>(g, start); }
API Int weft_matrix_room(Int K, Int V, Int training) {  // floats that a slab needs
  const Int size = (K + PAIR - 1) / PAIR * PAIR;
  return training ? size * (V + (CHUNK + 1) * W + CHUNK * SHARED) + 2 * W * W : K * COLUMNS * W;
}
