// Greedy search, sampling and beam search on the CPU, many steps in one call: a model's step (stepping.h), the best
// continuations (choosing.h) or drawn ones (drawing.h), which hypotheses end, which go on, and which sources are done.
// The rules are those of search/beam.py, greedy.py, sampling.py and step.py, its plain twins. Sources are independent:
// each thread takes a slab of them through all steps.
//
// Plain C interface, compiled like cells.cpp.
#include "drawing.h"
#include "stepping.h"

constexpr Int MOST = 64;  // hypotheses of a source; as MOST in search/compiled.py
enum Stop { BEST, FULL, WORST };
enum Kind { BEAM, GREEDY, SAMPLED };

struct Searching {
  Int sources, width, kept, nbest, classes, longest, slabs;  // B, W, N, V, T
  Int kind, eos, least, prefixed, free, enough, stop;      // least: tokens before eos; free: of the prefix, those without cost
  Int grams;               // length of the n-grams that do not occur twice; 0 allows all
  Int time, steps;         // steps so far, and those of this call
  const void *model;
  Take take;
  const Int *start;        // [B], the tokens fed first
  const Int *limit;        // [B]
  const Int *banned;       // tokens never chosen, in ascending order, followed by V
  const Int *banned_early; // the same and eos
  const Int *prefix;       // [prefixed], the first tokens of every hypothesis
  const double *norm;      // [T + 1], of each length
  double *logp;            // [B, W], sums of the hypotheses; zeros at the start
  Int *parent, *token;     // [B, T, W], what each step added
  double *score, *sum;     // [B, N], of the best that have ended; score is -inf at the start
  Int *written, *slot;     // [B, N], their tokens before eos, and which hypothesis wrote the last one
  Int *ended;              // [B], how many have ended; zeros at the start
  Int *state;              // [B], 0 = searched, 1 = done, 2 = its log-probabilities are broken; zeros at the start
  Int *room;               // [B, 1 + 2 W]; at its start the numbers of the sources that are searched
  Int searched;            // how many those are; after the call how many are left, or -1 if one has no result
  float *rows;             // [slabs, rows of a slab, V]
  Int apart;               // floats of a slab of `rows`
  Int *past;               // [slabs, past_row], with n-grams: 2 T + 1 numbers and those of banned_early
  Int past_row;
  Narrowing narrow;        // of sampling
  const double *uniform;   // [steps, B, W], of sampling
  double *chances;         // [slabs, 6 V], of sampling
};

namespace {

struct Source {
  const Searching &s;
  const Int b, time, thread;  // time: this step, from 1
  Int width;          // hypotheses before this step
  double *logp;
  Int *parent, *token;  // [W] of this step

  Source(const Searching &s, Int b, Int time, Int thread)
      : s(s), b(b), time(time), thread(thread), width(time > 1 ? s.width : 1), logp(s.logp + b * s.width),
        parent(s.parent + (b * s.longest + time - 1) * s.width), token(s.token + (b * s.longest + time - 1) * s.width) {}

  // Put a hypothesis into the list of the best that have ended, after those of equal score.
  void insert(double score, double sum, Int written, Int slot) {
    double *scores = s.score + b * s.kept, *sums = s.sum + b * s.kept;
    Int *lengths = s.written + b * s.kept, *slots = s.slot + b * s.kept, at = s.kept;
    for (; at && scores[at - 1] < score; at--)
      if (at < s.kept)
        scores[at] = scores[at - 1], sums[at] = sums[at - 1], lengths[at] = lengths[at - 1], slots[at] = slots[at - 1];
    if (at < s.kept) scores[at] = score, sums[at] = sum, lengths[at] = written, slots[at] = slot;
  }

  // The tokens that hypothesis w must not write now, in ascending order, followed by V.
  const Int *banned_for(Int w) const {
    const Int *banned = time <= s.least ? s.banned_early : s.banned, count = time - 1, n = s.grams;
    if (!n || count < n) return banned;
    Int *past = s.past + thread * s.past_row, *list = past + s.longest, found = 0;
    for (Int t = count - 1, slot = w; t >= 0; t--) {
      const Int at = (b * s.longest + t) * s.width + slot;
      past[t] = s.token[at], slot = s.parent[at];
    }
    while (banned[found] < s.classes) list[found] = banned[found], found++;
    for (Int i = 0; i + n <= count; i++)
      if (!memcmp(past + i, past + count - n + 1, (n - 1) * sizeof(Int))) list[found++] = past[i + n - 1];
    std::sort(list, list + found);
    list[found] = s.classes;
    return list;
  }

  void candidates(Best &best, const float *rows) const {
    for (Int w = 0; w < width; w++) {
      const double base = s.kind == GREEDY ? 0 : logp[w];
      const float *x = rows + w * s.classes;
      if (base == -INFINITY) continue;
      const Int *banned = banned_for(w);
      if (time > s.prefixed) {
        scan(best, x, s.classes, base, w, banned);
        continue;
      }
      const Int wanted = s.prefix[time - 1];
      while (*banned < wanted) banned++;
      if (*banned != wanted) best.add(base + (time <= s.free ? 0 : (double)x[wanted]), w, wanted);
    }
  }

  // One step; the state of the source afterwards.
  Int step(const float *rows) {
    if (s.kind == SAMPLED) return sample(rows);
    double value[2 * MOST];
    Int from[2 * MOST], found[2 * MOST];
    Best best = {value, from, found, s.kind == GREEDY ? 1 : 2 * s.width, 0};
    candidates(best, rows);
    for (Int i = best.found; i < best.count; i++) value[i] = -INFINITY, from[i] = found[i] = 0;
    if (!(value[0] <= (s.kind == GREEDY ? 0 : logp[0]) + 1e-3)) return 2;  // as check_best does
    return s.kind == GREEDY ? greedy(best) : beam(best);
  }

  Int greedy(const Best &best) {
    if (best.value[0] == -INFINITY) return 2;
    logp[0] += best.value[0], parent[0] = 0, token[0] = best.token[0];
    const bool end = token[0] == s.eos;
    if (end || time == s.limit[b]) insert(logp[0], logp[0], time - end, 0);
    return end || time == s.limit[b];
  }

  // The next token of each row; one that has ended keeps its place in `score`.
  Int sample(const float *rows) {
    Int done = 1;
    const double *uniform = s.uniform + ((time - 1 - s.time) * s.sources + b) * s.width;
    for (Int w = 0; w < s.width; w++) {
      const Int to = b * s.kept + w;
      parent[w] = time > 1 ? w : 0, token[w] = s.eos;
      if (s.score[to] > -INFINITY) continue;
      const float *x = rows + parent[w] * s.classes;
      const Int *banned = banned_for(parent[w]);
      if (time > s.prefixed) {
        token[w] = draw(s.narrow, x, s.classes, banned, uniform[w], s.chances + thread * 6 * s.classes);
        if (token[w] < 0) return 2;
      } else {
        token[w] = s.prefix[time - 1];
        while (*banned < token[w]) banned++;
        if (*banned == token[w] || !(x[token[w]] > -INFINITY)) return 2;
      }
      logp[w] += time <= s.free ? 0 : (double)x[token[w]];
      const bool end = token[w] == s.eos;
      if (end || time == s.limit[b]) s.score[to] = s.sum[to] = logp[w], s.written[to] = time - end, s.slot[to] = w;
      else done = 0;
    }
    return done;
  }

  Int beam(const Best &best) {
    for (Int i = 0; i < s.width; i++)
      if (best.token[i] == s.eos && best.value[i] > -INFINITY)
        insert(best.value[i] / s.norm[time], best.value[i], time - 1, best.parent[i]), s.ended[b]++;
    Int next = 0;
    for (int end = 0; end < 2; end++)
      for (Int i = 0; i < best.count && next < s.width; i++)
        if ((best.token[i] == s.eos) == (bool)end)
          logp[next] = end ? -INFINITY : best.value[i], parent[next] = best.parent[i], token[next++] = best.token[i];
    const bool done = finished();
    if (time < s.limit[b]) return done;
    for (Int w = 0, at = 0; w < s.width; w++) {  // cut: behind those that ended
      if (logp[w] == -INFINITY) continue;
      while (at < s.kept && s.score[b * s.kept + at] > -INFINITY) at++;
      if (at == s.kept) break;
      const Int to = b * s.kept + at;
      s.score[to] = logp[w] / s.norm[time], s.sum[to] = logp[w], s.written[to] = time, s.slot[to] = w;
    }
    return 1;
  }

  bool finished() const {  // rules 2 and 3 of search/beam.py
    const double *score = s.score + b * s.kept;
    bool full = s.ended[b] >= s.enough;
    if (s.stop != FULL) full = full && logp[0] / s.norm[time] <= score[s.stop == BEST ? 0 : s.kept - 1];
    return full || logp[0] / s.norm[s.limit[b]] <= score[s.nbest - 1];
  }
};

// All steps of this call for the sources of a slab that are not done.
inline void slab(const Searching &s, Int thread) {
  const Int first = s.searched * thread / s.slabs;
  Int count = s.searched * (thread + 1) / s.slabs - first;
  Int *number = s.room + first, *parent = s.room + s.sources + first * s.width, *token = parent + s.sources * s.width;
  float *rows = s.rows + thread * s.apart;
  for (Int t = s.time; t < s.time + s.steps && count; t++) {
    const Int width = t ? s.width : 1;
    for (Int i = 0; i < count; i++)
      for (Int w = 0; w < width; w++) {
        const Int past = (number[i] * s.longest + t - 1) * s.width + w;
        if (t) parent[i * width + w] = s.parent[past], token[i * width + w] = s.token[past];
        else parent[i] = 0, token[i] = s.start[number[i]];
      }
    const Step step = {thread, t, count, width, number, parent, token, rows};
    s.take(s.model, &step);
    Int left = 0;
    for (Int i = 0; i < count; i++) {
      const Int b = number[i];
      if (!(s.state[b] = Source(s, b, t + 1, thread).step(rows + i * width * s.classes))) number[left++] = b;
    }
    count = left;
  }
}

}  // namespace

// The tokens of every hypothesis that ended, read backwards from what the steps added.
struct Reading {
  Int sources, width, kept, longest, eos, slabs;
  const Int *parent, *token;   // [B, T, W]
  const Int *written, *slot;   // [B, N]
  Int *tokens;                 // [B, N, T], the result; eos after the end
};

namespace {

inline void read_slab(const Reading &r, Int s) {
  for (Int n = r.sources * r.kept * s / r.slabs; n < r.sources * r.kept * (s + 1) / r.slabs; n++) {
    Int *to = r.tokens + n * r.longest, slot = r.slot[n];
    for (Int t = r.longest - 1; t >= r.written[n]; t--) to[t] = r.eos;
    for (Int t = r.written[n] - 1; t >= 0; t--) {
      const Int at = (n / r.kept * r.longest + t) * r.width + slot;
      to[t] = r.token[at], slot = r.parent[at];
    }
  }
}

}  // namespace

API Int weft_searching_version() { return 6; }  // version of the structs above; must equal VERSION in jobs.py
API void weft_search(Searching *work, Start start) {
  work->searched = 0;
  for (Int b = 0; b < work->sources; b++)
    if (!work->state[b]) work->room[work->searched++] = b;
  run<Searching, slab>(work, start);
  work->searched = 0;
  for (Int b = 0; b < work->sources && work->searched >= 0; b++)
    if (!work->state[b]) work->searched++;
    else if (work->state[b] == 2 || work->score[b * work->kept] == -INFINITY) work->searched = -1;
}
API void weft_read_back(const Reading *work, Start start) { run<Reading, read_slab>(work, start); }
