// Models that write: translators, summarisers, language models, captioners and transcribers. Read next: weft.js.
import { Kept } from './kept.js';
import { tensor } from './operators.js';
import { pixels } from './pictures.js';
import { parts, sound } from './sound.js';
import { Vocabulary } from './vocabulary.js';

const ints = (values, dims) => tensor('int32', dims, Int32Array.from(values));
const trues = (size) => tensor('bool', [1, size], new Uint8Array(size).fill(1));
const BUSY = 40; // milliseconds after which the page may draw and read keys

// The rows of a tensor, in another order or repeated.
function rows(one, order) {
  const [count, ...rest] = one.dims, size = rest.reduce((a, b) => a * b, 1);
  if (order.length === count && order.every((from, to) => from === to)) return one;
  const found = tensor(one.type, [order.length, ...rest]);
  order.forEach((from, to) => found.data.set(one.data.subarray(from * size, (from + 1) * size), to * size));
  return found;
}

// The rows and columns of the largest numbers, the largest first; the first of equal ones.
export function likeliest(sums, logp, size, banned, count) {
  const best = [];
  for (let row = 0; row < sums.length; row++) {
    for (let token = 0; token < size; token++) {
      const value = sums[row] + logp[row * size + token];
      if ((best.length === count && value <= best[count - 1].value) || banned.has(token)) continue;
      let place = best.length;
      while (place > 0 && best[place - 1].value < value) place--;
      best.splice(place, 0, { row, token, value });
      if (best.length > count) best.pop();
    }
  }
  return best;
}

// The tokens that would complete an n-gram which a path has already.
function repeated(path, size) {
  const last = path.slice(path.length - size + 1), found = [];
  for (let at = 0; at + size <= path.length; at++) if (last.every((token, n) => token === path[at + n])) found.push(path[at + size - 1]);
  return found;
}

let idle = 0;
async function breathe(signal) {
  signal?.throwIfAborted();
  const now = performance.now();
  if (now - idle < BUSY) return;
  await new Promise((done) => setTimeout(done));
  idle = performance.now();
}

class Writer {
  constructor(content) {
    const about = content.settings;
    Object.assign(this, { about, step: content.graph('step'), banned: new Set(about.banned) });
    this.changing = about.state.filter((one) => one.changes).map((one) => one.name);
    this.fixed = about.state.filter((one) => !one.changes).map((one) => one.name);
    this.beams = about.decoding.search === 'beam' ? about.decoding.beam : 1;
    this.samples = about.decoding.search === 'sample';
    const { temperature, top_k: topK, top_p: topP } = about.decoding;
    this.usual = { temperature, topK, topP };
  }

  // Beam search as in Weft; three rules end it, see weft/search/beam.py. Returns what ended, the best first.
  async beam(first, start, width, limit, { end, alpha = 1, normalisation = 'length', coverage = 0, stop = 'best', noRepeat = 0, shortest = 0, signal, onstep }) {
    const norm = (length) => (normalisation === 'length' ? length ** alpha : ((5 + length) / 6) ** alpha);
    let state = start, live = [{ sum: 0, path: [], looks: [], seen: null }], tokens = [first];
    const ended = [], keep = (one) => { ended.push(one); ended.sort((a, b) => b.score - a.score); };
    for (let time = 1; time <= limit; time++) {
      await breathe(signal);
      const out = await this.advance(tokens, state, live.map((one) => one.path)), size = out.logp.dims[1], places = out.attention?.dims[1] ?? 0;
      this.forbid(out.logp, live.map((one) => one.path), { end, noRepeat, shortest });
      const look = (row) => out.attention?.data.slice(row * places, (row + 1) * places) ?? null;
      const seen = live.map((one, row) => (coverage ? look(row).map((weight, at) => weight + (one.seen?.[at] ?? 0)) : null));
      const extra = seen.map((weights) => (weights ? coverage * weights.reduce((sum, weight) => sum + Math.log(Math.min(1, Math.max(1e-6, weight))), 0) : 0));
      const found = likeliest(live.map((one) => one.sum), out.logp.data, size, this.banned, 2 * width);
      for (const { row, token, value } of found.slice(0, width)) {
        if (token === end && value > -Infinity) keep({ score: value / norm(time) + extra[row], path: live[row].path, looks: [...live[row].looks, look(row)] });
      }
      const going = found.filter((one) => one.token !== end).slice(0, width), order = going.map((one) => one.row), best = ended[0]?.score ?? -Infinity;
      live = going.map(({ row, token, value }) => ({ sum: value, path: [...live[row].path, token], looks: [...live[row].looks, look(row)], seen: seen[row], extra: extra[row] }));
      onstep?.({ live, ended, tokens: going });
      const bar = { best, full: Infinity, worst: ended[width - 1]?.score, never: -Infinity }[stop], alive = Math.max(...live.map((one) => one.sum / norm(time) + one.extra));
      if (live[0].sum / norm(limit) <= best || (ended.length >= width && alive <= bar)) return ended;
      tokens = going.map((one) => one.token);
      state = { ...state };
      for (const name of this.changing) state[name] = rows(out[`${name}_out`], order);
      for (const name of this.fixed) state[name] = rows(state[name], order);
    }
    if (ended.length) return ended;
    return live.map((one) => ({ ...one, score: one.sum / norm(limit) + one.extra })).sort((a, b) => b.score - a.score);
  }

  // Random tokens by the model's probabilities.
  async sample(first, start, limit, end, { seed, signal, onstep, noRepeat = 0, shortest = 0, ...how }) {
    const draw = random(seed), path = [];
    let state = start, token = first;
    while (path.length < limit) {
      await breathe(signal);
      const out = this.advance([token], state, [path]);
      this.forbid(out.logp, [path], { end, noRepeat, shortest });
      const probs = shaped(out.logp.data, this.banned, how);
      let rest = draw();
      token = probs.findIndex((prob) => (rest -= prob) < 0);
      if (token < 0) token = probs.indexOf(Math.max(...probs));
      if (token === end) break;
      path.push(token);
      onstep?.({ token, prob: probs[token], piece: this.vocabulary.piece(token) });
      state = { ...state };
      for (const name of this.changing) state[name] = out[`${name}_out`];
    }
    return path;
  }

  advance(tokens, state, paths, probe) { return this.step.run({ token: ints(tokens, [tokens.length]), ...state }, probe); }

  // Exclude what may not follow paths of one length.
  forbid(logp, paths, { end, noRepeat, shortest }) {
    const size = logp.dims[1];
    paths.forEach((path, row) => {
      if (path.length < shortest) logp.data[row * size + end] = -Infinity;
      if (noRepeat) for (const token of repeated(path, noRepeat)) logp.data[row * size + token] = -Infinity;
    });
  }

  // What the model computed at each token of a path: log-probabilities, attention, the state, and gates of recurrent layers.
  follow(tokens, start) {
    let state = start;
    return tokens.map((token, at) => {
      const gates = [], out = this.advance([token], state, [tokens.slice(1, at + 1)], (seen) => gates.push(seen));
      state = { ...state };
      for (const name of this.changing) state[name] = out[`${name}_out`];
      return { token, logp: out.logp.data, attention: out.attention?.data ?? null, state, gates };
    });
  }
}

class SourceWriter extends Writer {
  constructor(content) {
    super(content);
    this.start = content.graph('start');
    this.target = new Vocabulary(content.file(this.about.target));
  }

  // Hypotheses for the inputs of `start`, the best first; length is that of the source.
  async write(source, length, { beam, signal, onstep, inside, ...more } = {}, names = []) {
    const how = this.about.decoding, { eos: end, max_output: most } = this.about, gates = [];
    let limit = Math.max(Math.ceil(how.max_ratio * length) + how.max_extra, how.min_length + 1);
    if (most !== null) limit = Math.min(limit, most - (this.about.prompted ? length : 0));
    if (limit < 1) throw new Error(`The input has ${length} pieces, which leave no room for an answer; shorten it.`);
    const state = this.start.run(source, inside ? (seen) => gates.push(seen) : undefined), { length_penalty: alpha, normalisation, coverage, stop, no_repeat_ngram: noRepeat, min_length: shortest } = how;
    const first = this.about.sos, ended = this.samples && !beam
      ? [{ path: await this.sample(first, state, limit, end, { ...this.usual, seed: how.seed, ...more, noRepeat, shortest, signal, onstep }), looks: [], score: 0 }]
      : await this.beam(first, state, beam || this.beams, limit, { end, alpha, normalisation, coverage, stop, noRepeat, shortest, signal, onstep });
    const found = ended.map(({ path, looks, score }) => ({ text: this.target.decode(path, names), pieces: path.map((number) => this.target.piece(number, names)), score, attention: looks[0] ? looks.slice(0, path.length) : null }));
    const seen = inside ? { encoder: gates, steps: this.follow([this.about.sos, ...ended[0].path], state) } : undefined;
    return { ...found[0], hypotheses: found, inside: seen };
  }
}

export class Rewriter extends SourceWriter {
  constructor(content) {
    super(content);
    this.source = this.about.target === this.about.source ? this.target : new Vocabulary(content.file(this.about.source));
    this.directions = Object.keys(this.about.directions ?? {});
    this.kept = this.about.kept && this.about.decoding.verbatim ? new Kept(this.about.kept, this.about.codes, this.source, this.about.keeps_parts) : null;
  }

  // The numbers of a text, and the names of unknown pieces that may be copied.
  read(text, direction) {
    if (this.about.copies) return this.source.named(text, this.about.cut);
    if (!this.directions.length) return { numbers: this.cut(this.source.encode(text)), names: [] };
    const way = this.about.directions[direction ?? this.directions[0]];
    return { numbers: text.trim() ? [...way.first, ...this.source.encode(way.prompt.replace('{text}', () => text))] : [], names: [] };
  }

  // The pieces of a source as they are shown, unknown ones by their own text.
  shown(text, numbers, names) {
    const plain = this.source.order || this.directions.length || names.length ? { numbers, names } : this.source.named(text, this.about.cut);
    return plain.numbers.map((number) => this.source.piece(number, plain.names));
  }

  cut(numbers) { // another program's symbols stay at the end of a text that is cut
    const { cut } = this.about, end = this.source.order ? this.source.after : [];
    if (cut === null || numbers.length <= cut) return numbers;
    return end.length < cut ? [...numbers.slice(0, cut - end.length), ...end] : numbers.slice(0, cut);
  }

  async answer(text, options = {}) {
    if (this.kept?.whole(text)) return { text: text.trim() && text, source: [], pieces: [], score: 0, hypotheses: [{ text: text.trim() && text, pieces: [], score: 0, attention: null }], attention: null, lacks: [], adds: [] };
    const read = this.kept?.readable(text) ?? text, { numbers, names } = this.read(read, options.direction), most = this.about.max_source;
    if (!numbers.length) return { text: '', source: [], pieces: [], hypotheses: [], attention: null };
    if (most !== null && numbers.length > most) throw new Error(`The text has ${numbers.length} pieces, the model reads at most ${most}; shorten it.`);
    const found = await this.write({ source: ints(numbers, [1, numbers.length]), mask: trues(numbers.length) }, numbers.length, options, names);
    const looks = found.attention?.[0]?.length === numbers.length ? found.attention : null;
    return { ...found, attention: looks, source: this.shown(read, numbers, names), lacks: this.kept?.lacking(text, found.text) ?? [], adds: this.kept?.added(text, found.text) ?? [] };
  }
}

export class Captioner extends SourceWriter {
  reads = 'picture';

  async answer(file, options = {}) {
    const { plain, height, width } = await pixels(file, this.about.size), [tall, wide] = this.about.shape;
    if (height !== tall || width !== wide) throw new Error(`Expected a picture of ${wide} x ${tall} pixels, as the model was trained on, got ${width} x ${height}; rescale it.`);
    return this.write({ picture: tensor('float32', [1, tall, wide, 3], Float32Array.from(plain, (value) => value / 127.5 - 1)) }, 0, options);
  }
}

export class Transcriber extends SourceWriter {
  reads = 'sound';

  constructor(content) {
    super(content);
    this.frames = sound(this.about.sound, content.file(this.about.sound.filters));
  }

  async answer(file, options = {}) {
    const most = this.about.max_source, found = [];
    for (const { data, count, bands } of parts(await this.frames(file), this.about.sound)) {
      if (most !== null && count > most) throw new Error(`The recording has ${count} frames, the model reads at most ${most}; cut it into pieces.`);
      found.push(await this.write({ frames: tensor('float32', [1, count, bands], data), mask: trues(count) }, count, options));
    }
    if (found.length === 1) return found[0];
    const ranks = Math.min(...found.map((one) => one.hypotheses.length)), hypotheses = Array.from({ length: ranks }, (_, rank) => {
      const own = found.map((one) => one.hypotheses[rank]);
      return { text: own.map((one) => one.text).filter(Boolean).join(' '), pieces: own.flatMap((one) => one.pieces), score: own.reduce((sum, one) => sum + one.score, 0) / own.length, attention: null };
    });
    return { ...hypotheses[0], hypotheses };
  }
}

export class Continuer extends Writer {
  constructor(content) {
    super(content);
    this.vocabulary = new Vocabulary(content.file(this.about.vocabulary));
  }

  // The text with its continuation. Options: beam, or for random texts temperature, topK, topP and seed; tokens, their number.
  async answer(text, { beam, tokens, signal, onstep, inside, ...how } = {}) {
    const { eos, ends, pad, decoding } = this.about, limit = tokens ?? decoding.max_tokens, given = this.row(text);
    if (limit < 1) return { text, added: '', pieces: [] };
    const end = ends === 1 ? eos : pad, state = this.begin(given); // end symbols after which writing stops
    let path;
    if (beam || !this.samples) [{ path }] = await this.beam(given.at(-1), state, beam || this.beams, limit, { end, alpha: decoding.length_penalty, signal, onstep });
    else path = await this.sample(given.at(-1), state, limit, end, { ...this.usual, seed: decoding.seed, ...how, signal, onstep });
    const places = path.flatMap((token, place) => (token === eos ? [place] : []));
    if (places.length >= ends) path = path.slice(0, places[ends - 1]);
    const added = this.added(text, given, path).split('\n').slice(0, decoding.max_lines).join('\n');
    return { text: text + added, added, pieces: path.map((number) => this.vocabulary.piece(number)), inside: inside ? { steps: this.read(text) } : undefined };
  }

  // What may follow a text: { pieces, probs } with the likeliest first.
  next(text, how = {}) {
    const given = this.row(text), out = this.advance([given.at(-1)], this.begin(given), [[]]);
    const probs = shaped(out.logp.data, this.banned, { temperature: 1, topK: 0, topP: 1, ...how }), order = [...probs.keys()].filter((one) => probs[one] > 0).sort((a, b) => probs[b] - probs[a]);
    return { pieces: order.map((number) => this.vocabulary.piece(number)), probs: order.map((number) => probs[number]) };
  }

  // What the model computed at each token of a text: see Writer.follow; `piece` is how a token is shown.
  read(text) { return this.follow(this.row(text), this.state(1)).map((one) => ({ ...one, piece: this.vocabulary.piece(one.token) })); }

  // The state before the last token of a text.
  begin(given) {
    const { window } = this.about;
    this.given = given;
    this.past = window === null ? given.length - 1 : Math.min(given.length, window) - 1;
    return this.reread([given.slice(given.length - 1 - this.past, -1)]);
  }

  // The text as the model reads it: whole, or its lines, each after an end symbol.
  row(text) {
    const { vocabulary } = this;
    if (!vocabulary.opening) return text.split('\n').flatMap((line) => [this.about.eos, ...vocabulary.encode(line)]);
    const row = [...vocabulary.opening, ...vocabulary.encode(text)];
    return row.length ? row : [this.about.sos];
  }

  // The state before any token.
  state(count) {
    const types = { int64: 'int32' };
    return Object.fromEntries(this.about.state.map(({ name, shape, type, values }) => {
      const found = tensor(types[type] ?? type, shape);
      if (values) values.forEach((value, at) => { found.data[at] = Number(value); });
      return [name, rows(found, new Array(count).fill(0))];
    }));
  }

  // The state after tokens, from the beginning.
  reread(sequences) {
    let state = this.state(sequences.length);
    for (let at = 0; at < sequences[0].length; at++) {
      const out = this.step.run({ token: ints(sequences.map((row) => row[at]), [sequences.length]), ...state });
      state = { ...state };
      for (const name of this.changing) state[name] = out[`${name}_out`];
    }
    return state;
  }

  advance(tokens, state, paths, probe) {
    const { window } = this.about;
    let now = state;
    if (window !== null && !probe && this.past >= window) { // the older half is forgotten
      this.past = Math.floor(window / 2);
      const past = paths.map((path) => [...this.given, ...path].slice(0, -1));
      now = this.reread(past.map((row) => row.slice(row.length - this.past)));
    }
    this.past++;
    return super.advance(tokens, now, paths, probe);
  }

  // The text that tokens append to a text.
  added(text, given, added) {
    const lines = !this.vocabulary.opening, decoded = (tokens) => [...(lines ? this.lines(tokens) : this.vocabulary.exact(tokens))];
    const known = given.map((token) => (token === this.about.unk ? this.about.known : token));
    const before = decoded(known), whole = decoded([...known, ...added]), differs = whole.findIndex((one, at) => one !== before[at]);
    let found = differs < 0 ? '' : whole.slice(differs).join(''); // bytes that follow may change the last characters
    if (lines && /\s$/u.test(text) && found.startsWith(' ')) found = found.slice(1);
    for (const stop of this.about.decoding.stop) found = found.split(stop)[0];
    return found;
  }

  lines(tokens) {
    const found = [[]];
    for (const token of tokens) { if (token === this.about.eos) found.push([]); else found.at(-1).push(token); }
    return found.map((row) => this.vocabulary.decode(row)).join('\n');
  }
}

// Probabilities after temperature, top_k and top_p, from log-probabilities.
export function shaped(logp, banned, { temperature, topK, topP }) {
  const values = Array.from(logp, (value, at) => (banned.has(at) ? -Infinity : value / (temperature || 1e-6)));
  if (topK) [...values.keys()].sort((a, b) => values[b] - values[a]).slice(topK).forEach((at) => { values[at] = -Infinity; });
  const most = values.reduce((a, b) => Math.max(a, b), -Infinity), probs = values.map((value) => Math.exp(value - most)), divide = () => {
    const sum = probs.reduce((a, b) => a + b, 0);
    probs.forEach((prob, at) => { probs[at] = prob / sum; });
  };
  divide();
  if (topP < 1) {
    let before = 0;
    for (const at of [...probs.keys()].sort((a, b) => probs[b] - probs[a])) {
      const prob = probs[at];
      if (before >= topP) probs[at] = 0;
      before += prob;
    }
    divide();
  }
  return probs;
}

// Random numbers from 0 to 1 that a seed repeats (mulberry32).
function random(seed = 1) {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

export class Filler {
  constructor(content) {
    Object.assign(this, { about: content.settings, graph: content.graph('pieces') });
    this.vocabulary = new Vocabulary(content.file(this.about.vocabulary));
  }

  // The text with its gaps filled; gaps: for each the likeliest pieces with their probabilities.
  async answer(text, { count = 5 } = {}) {
    const { gap, mask, sos, eos, banned, max_length: most } = this.about, parts = text.split(gap), last = parts.pop();
    if (!parts.length) throw new Error(`Write ${gap} where a word is missing.`);
    const before = parts.flatMap((part) => [...this.vocabulary.encode(part.replace(/ +$/, '')), mask]); // a gap has the space before it
    const tokens = [sos, ...before, ...this.vocabulary.encode(last), eos];
    if (most !== null && tokens.length > most) throw new Error(`The text has ${tokens.length} pieces, the model reads at most ${most}; shorten it.`);
    const { logp } = this.graph.run({ tokens: ints(tokens, [1, tokens.length]), mask: trues(tokens.length) }), width = logp.dims[2], never = new Set(banned);
    const found = tokens.flatMap((token, at) => (token === mask ? [likeliest([0], logp.data.subarray(at * width, (at + 1) * width), mask, never, count)] : []));
    const chosen = found.map((each) => each[0].token), filled = tokens.map((token) => (token === mask ? chosen.shift() : token));
    const gaps = found.map((each) => each.map(({ token, value }) => ({ piece: this.vocabulary.decode([token]), prob: Math.exp(value) })));
    return { text: this.vocabulary.decode(filled.slice(1, -1)), gaps };
  }
}
