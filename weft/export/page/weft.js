// The exported model in JavaScript: the same steps as weft_onnx.py. load(folder) gives a model; model.answer(text, options).
import * as ort from './ort.wasm.min.mjs';
import { Tokenizer } from './tokenizers.min.mjs';
import { pixels } from './pictures.js';

ort.env.wasm.numThreads = 1; // more threads need special headers of the server
ort.env.wasm.wasmPaths = new URL('./', import.meta.url).href;

const UNK = 1, EOS = 3, WHITE = /(?:[^\S\ufeff]|[\x1c-\x1f\x85])+/u; // what Python's split() splits at
const ints = (values, shape) => new ort.Tensor('int64', BigInt64Array.from(values, BigInt), shape);
const bools = (count) => new ort.Tensor('bool', new Uint8Array(count).fill(1), [1, count]);

async function fetched(name, kind) {
  const response = await fetch(name);
  if (!response.ok) throw new Error(`${name}: ${response.status} ${response.statusText}`);
  return response[kind]();
}

async function graph(folder, name) {
  const session = await ort.InferenceSession.create(new Uint8Array(await fetched(`${folder}${name}.onnx`, 'arrayBuffer')));
  return (given) => session.run(Object.fromEntries(session.inputNames.map((each) => [each, given[each]])));
}

class Vocabulary {
  static async load(folder, name) {
    const { weft, ...content } = await fetched(folder + name, 'json');
    const pairs = (weft.order ?? []).map((there, here) => [there, here]);
    if (!weft.opening) pairs.reverse(); // of a symbol with two roles, a language model predicts the last one
    const tokenizer = new Tokenizer(content, {});
    replaced(tokenizer.decoder);
    fusedInWords(tokenizer.model);
    return Object.assign(new Vocabulary(), { tokenizer, numbers: new Map(pairs), ...weft });
  }

  normalise(text) {
    const form = this.form.toUpperCase(), shaped = (one) => (form === 'NONE' ? one : one.normalize(form));
    return shaped(this.lowercase ? shaped(text).toLowerCase() : text).split(WHITE).filter(Boolean).join(' ');
  }

  encode(text) {
    if (this.order) { // another program's tokenizer, renumbered
      const found = this.tokenizer.encode(text, { add_special_tokens: false }).ids.map((id) => this.numbers.get(id) ?? UNK);
      return [...this.before, ...found, ...this.after];
    }
    const plain = this.normalise(text);
    return plain ? this.tokenizer.encode(plain, { add_special_tokens: false }).ids.map((id) => id ?? UNK) : [];
  }

  piece(number) { return this.tokenizer.id_to_token(this.order ? this.order[number] : number) ?? ''; }

  decode(numbers) {
    const kept = numbers.filter((number) => number > EOS);
    if (this.order) return this.exact(numbers).trim();
    return kept.map((number) => this.piece(number)).join('').split(WHITE).filter(Boolean).join(' ');
  }

  exact(numbers) { // the text of another program's pieces, with the white space at its ends
    const there = numbers.filter((number) => number > EOS).map((number) => this.order[number]).filter((number) => number >= 0);
    return there.length ? this.tokenizer.decode(there, { skip_special_tokens: true, clean_up_tokenization_spaces: false }) : '';
  }
}

// Neighbouring unknown pieces are one within a word and not across words, as in the Python library.
function fusedInWords(model) {
  if (!model.fuse_unk) return;
  const encode = model.encode.bind(model), unknown = model.unk_token_id;
  const known = (piece) => (model.tokens_to_ids.get(piece) ?? unknown) !== unknown;
  const fused = (pieces) => pieces.filter((piece, n) => !n || known(piece) || known(pieces[n - 1]));
  model.fuse_unk = false;
  model.encode = (words) => words.flatMap((word) => fused(encode([word])));
}

// Bytes that are no text become one mark each, as in the Python library.
function replaced(decoder) {
  for (const part of decoder?.decoders ?? [decoder]) {
    if (part?.config.type !== 'ByteFallback') continue;
    const strict = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });
    part.text_decoder = { decode(bytes) { try { return strict.decode(bytes); } catch { return '\ufffd'.repeat(bytes.length); } } };
  }
}

// The rows of a tensor, in another order or repeated.
function rows(tensor, order) {
  const [count, ...rest] = tensor.dims, size = rest.reduce((a, b) => a * b, 1);
  if (order.length === count && order.every((from, to) => from === to)) return tensor;
  const data = new tensor.data.constructor(order.length * size);
  order.forEach((from, to) => data.set(tensor.data.subarray(from * size, (from + 1) * size), to * size));
  return new ort.Tensor(tensor.type, data, [order.length, ...rest]);
}

// The rows and columns of the largest numbers, the largest first; the first of equal ones.
function likeliest(sums, logp, size, banned, count) {
  const best = [];
  for (let row = 0; row < sums.length; row++) {
    for (let token = 0; token < size; token++) {
      const value = sums[row] + logp[row * size + token];
      if (best.length === count && value <= best[count - 1].value) continue;
      if (banned.has(token)) continue;
      let place = best.length;
      while (place > 0 && best[place - 1].value < value) place--;
      best.splice(place, 0, { row, token, value });
      if (best.length > count) best.pop();
    }
  }
  return best;
}

class Writer {
  constructor(about, step) {
    Object.assign(this, { about, step });
    this.changing = about.state.filter((one) => one.changes).map((one) => one.name);
    this.fixed = about.state.filter((one) => !one.changes).map((one) => one.name);
  }

  // Beam search as in Weft; three rules end it, see weft/search/beam.py.
  async beam(first, state, width, limit, { end, alpha = 1, normalisation = 'length' }) {
    const norm = (length) => (normalisation === 'length' ? length ** alpha : ((5 + length) / 6) ** alpha);
    const banned = new Set(this.about.banned);
    let sums = [0], tokens = [first], paths = [[]], looks = [[]], best = { score: -Infinity, path: [], looks: [] }, finished = 0;
    for (let time = 1; time <= limit; time++) {
      const out = await this.advance(tokens, state, paths);
      const size = out.logp.dims[1], length = out.attention?.dims[1];
      const look = (row) => (out.attention ? [...out.attention.data.subarray(row * length, (row + 1) * length)] : null);
      const found = likeliest(sums, out.logp.data, size, banned, 2 * width);
      for (const { row, token, value } of found.slice(0, width)) {
        if (token !== end || value === -Infinity) continue;
        finished++;
        if (value / norm(time) > best.score) best = { score: value / norm(time), path: paths[row], looks: [...looks[row], look(row)] };
      }
      const going = found.filter((one) => one.token !== end).slice(0, width), order = going.map((one) => one.row);
      sums = going.map((one) => one.value);
      looks = going.map(({ row }) => [...looks[row], look(row)]);
      paths = going.map(({ row, token }) => [...paths[row], token]);
      if (sums[0] / norm(limit) <= best.score || (finished >= width && sums[0] / norm(time) <= best.score)) return best;
      tokens = going.map((one) => one.token);
      state = { ...state };
      for (const name of this.changing) state[name] = rows(out[`${name}_out`], order);
      for (const name of this.fixed) state[name] = rows(state[name], order);
    }
    return finished ? best : { score: sums[0] / norm(limit), path: paths[0], looks: looks[0] };
  }

  advance(tokens, state) { return this.step({ token: ints(tokens, [tokens.length]), ...state }); }
}

class Rewriter extends Writer {
  static async load(folder, about) {
    const model = new Rewriter(about, await graph(folder, 'step'));
    model.start = await graph(folder, 'start');
    model.source = await Vocabulary.load(folder, about.source);
    model.target = about.target === about.source ? model.source : await Vocabulary.load(folder, about.target);
    model.directions = Object.keys(about.directions ?? {});
    model.beams = about.decoding.search === 'beam' ? about.decoding.beam : 1;
    return model;
  }

  read(text, direction) {
    if (!this.directions.length) return this.source.encode(text).slice(0, this.about.cut ?? undefined);
    const way = this.about.directions[direction ?? this.directions[0]];
    return text.trim() ? [...way.first, ...this.source.encode(way.prompt.replace('{text}', () => text))] : [];
  }

  async answer(text, { beam, direction } = {}) {
    const source = this.read(text, direction), how = this.about.decoding;
    if (!source.length) return { text: '' };
    const most = this.about.max_source;
    if (most !== null && source.length > most) throw new Error(`The text has ${source.length} pieces, the model reads at most ${most}; shorten it.`);
    let limit = Math.ceil(how.max_ratio * source.length) + how.max_extra;
    if (this.about.max_output !== null) limit = Math.min(limit, this.about.max_output - (this.about.prompted ? source.length : 0));
    const state = await this.start({ source: ints(source, [1, source.length]), mask: bools(source.length) });
    const found = await this.beam(this.about.sos, state, beam || this.beams, limit, { end: this.about.eos, alpha: how.length_penalty, normalisation: how.normalisation });
    const looks = found.looks.slice(0, found.path.length);
    const seen = looks.length && looks[0]?.length === source.length ? looks : null;
    const shown = (vocabulary, numbers) => numbers.map((number) => vocabulary.piece(number).replace(/ /g, '▁'));
    return { text: this.target.decode(found.path), looks: seen, source: shown(this.source, source), target: shown(this.target, found.path) };
  }
}

class Continuer extends Writer {
  static async load(folder, about) {
    const model = new Continuer(about, await graph(folder, 'step'));
    model.vocabulary = await Vocabulary.load(folder, about.vocabulary);
    model.beams = about.decoding.search === 'beam' ? about.decoding.beam : 1;
    return model;
  }

  async answer(text, { beam } = {}) {
    const how = this.about.decoding, eos = this.about.eos, window = this.about.window;
    const given = this.row(text);
    const limit = how.max_tokens;
    if (limit < 1) return { text };
    this.given = given;
    this.past = window === null ? given.length - 1 : Math.min(given.length, window) - 1;
    const state = await this.reread([given.slice(given.length - 1 - this.past, -1)]);
    const end = this.about.ends === 1 ? eos : this.about.pad; // end symbols after which writing stops
    let { path } = await this.beam(given.at(-1), state, beam || this.beams, limit, { end, alpha: how.length_penalty });
    const ends = path.flatMap((token, place) => (token === eos ? [place] : []));
    if (ends.length >= this.about.ends) path = path.slice(0, ends[this.about.ends - 1]);
    return { text: text + this.added(text, given, path).split('\n').slice(0, how.max_lines).join('\n') };
  }

  // What the model reads for a text: the whole text, or its lines, each after an end symbol.
  row(text) {
    const { vocabulary } = this;
    if (!vocabulary.opening) return text.split('\n').flatMap((line) => [this.about.eos, ...vocabulary.encode(line)]);
    const row = [...vocabulary.opening, ...vocabulary.encode(text)];
    return row.length ? row : [this.about.sos];
  }

  // The state after tokens, from the beginning.
  async reread(sequences) {
    const count = sequences.length, arrays = { float32: Float32Array, int64: BigInt64Array, bool: Uint8Array };
    let state = {};
    for (const one of this.about.state) {
      const size = one.shape.reduce((a, b) => a * b, 1), data = new arrays[one.type](size);
      if (one.values) one.values.forEach((value, at) => { data[at] = one.type === 'int64' ? BigInt(value) : Number(value); });
      state[one.name] = rows(new ort.Tensor(one.type, data, one.shape), new Array(count).fill(0));
    }
    for (let at = 0; at < sequences[0].length; at++) {
      const out = await this.step({ token: ints(sequences.map((row) => row[at]), [count]), ...state });
      state = { ...state };
      for (const name of this.changing) state[name] = out[`${name}_out`];
    }
    return state;
  }

  async advance(tokens, state, paths) {
    const window = this.about.window;
    if (window !== null && this.past >= window) { // the older half is forgotten
      this.past = Math.floor(window / 2);
      const past = paths.map((path) => [...this.given, ...path].slice(0, -1));
      state = await this.reread(past.map((row) => row.slice(row.length - this.past)));
    }
    this.past++;
    return super.advance(tokens, state);
  }

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
    for (const token of tokens) token === this.about.eos ? found.push([]) : found.at(-1).push(token);
    return found.map((row) => this.vocabulary.decode(row)).join('\n');
  }
}

class Tagger {
  static async load(folder, about) {
    const model = new Tagger(), lexicon = await fetched(folder + about.lexicon, 'json');
    const numbers = (names) => new Map(names.map((name, at) => [name, at + 2]));
    return Object.assign(model, { about, lexicon, word: numbers(lexicon.words), letter: numbers(lexicon.letters), graph: await graph(folder, 'scores') });
  }

  async answer(text) {
    const words = text.split(WHITE).filter(Boolean);
    if (!words.length) return { text: '' };
    const half = Math.floor(this.about.letters / 2);
    const cut = words.map((word) => { const all = [...word]; return all.length <= this.about.letters ? all : [...all.slice(0, half), ...all.slice(-half)]; });
    const longest = Math.max(...cut.map((word) => word.length)), letters = new Array(words.length * longest).fill(0);
    cut.forEach((word, row) => word.forEach((letter, at) => { letters[row * longest + at] = this.letter.get(letter) ?? 1; }));
    const known = words.map((word) => this.word.get(this.lexicon.lowercase ? word.toLowerCase() : word) ?? 1);
    const { scores } = await this.graph({ words: ints(known, [1, words.length]), letters: ints(letters, [words.length, longest]), which: ints(words.keys(), [1, words.length]), mask: bools(words.length) });
    const count = this.lexicon.tags.length, table = words.map((_, at) => [...scores.data.subarray(at * count, (at + 1) * count)]);
    const best = this.about.crf ? this.viterbi(table) : table.map((row) => row.indexOf(Math.max(...row)));
    return { text: words.map((word, at) => `${word}\t${this.lexicon.tags[best[at]]}`).join('\n') };
  }

  viterbi([first, ...rest]) {
    const { begin, end, transitions } = this.about.crf;
    let value = first.map((score, tag) => score + begin[tag]);
    const origins = [];
    for (const row of rest) {
      const from = row.map((_, to) => value.map((one, tag) => one + transitions[tag][to]));
      origins.push(from.map((sums) => sums.indexOf(Math.max(...sums))));
      value = row.map((score, to) => score + Math.max(...from[to]));
    }
    const last = value.map((one, tag) => one + end[tag]), path = [last.indexOf(Math.max(...last))];
    for (const origin of origins.reverse()) path.push(origin[path.at(-1)]);
    return path.reverse();
  }
}

class Classifier {
  static async load(folder, about) {
    const model = Object.assign(new Classifier(), { about, graph: await graph(folder, 'scores') });
    model.vocabulary = await Vocabulary.load(folder, about.vocabulary);
    if (about.bag) {
      const items = await fetched(folder + about.bag.items, 'json');
      model.item = new Map(items.items.map((item, at) => [JSON.stringify(item), at + 1]));
      model.spelled = items.items.findIndex((item) => typeof item[0] === 'string') + 1 || Infinity;
      model.rarity = [0, ...items.documents].map((count) => Math.log((1 + (items.texts ?? 0)) / (1 + count)) + 1);
    }
    return model;
  }

  async answer(text) {
    let tokens = this.vocabulary.encode(text).slice(0, this.about.max_length), weights = [0];
    if (this.about.bag) {
      const counts = this.counted(tokens, text);
      if (counts.size) weights = this.weighed(counts);
      tokens = [...counts.keys()];
    }
    if (!tokens.length) tokens = [0];
    const given = { tokens: ints(tokens, [1, tokens.length]), mask: bools(tokens.length) };
    if (this.about.bag) given.weights = new ort.Tensor('float32', Float32Array.from(weights), [1, tokens.length]);
    const { logp } = await this.graph(given);
    return { text: listed(logp.data, this.about.classes) };
  }

  counted(tokens, text) {
    const bag = this.about.bag, row = bag.edges ? [2, ...tokens, 3] : tokens, found = [];
    for (let size = 1; size <= bag.ngrams; size++) for (let at = 0; at + size <= row.length; at++) found.push(row.slice(at, at + size));
    if (bag.letters) {
      const [least, most] = bag.letters;
      for (const word of this.vocabulary.normalise(text).split(' ').filter(Boolean).slice(0, this.about.max_length)) {
        const marked = [...`<${word}>`];
        for (let begin = 0; begin < marked.length; begin++) for (let end = begin + least; end <= Math.min(begin + most, marked.length); end++) found.push([marked.slice(begin, end).join('')]);
      }
    }
    const counts = new Map();
    for (const item of found) {
      if (bag.edges && item.length === 1 && (item[0] === 2 || item[0] === 3)) continue;
      const number = this.item.get(JSON.stringify(item));
      if (number) counts.set(number, (counts.get(number) ?? 0) + 1);
    }
    return counts;
  }

  weighed(counts) {
    const kind = this.about.bag.weight, all = [...counts];
    if (kind === 'presence') return all.map(() => 1);
    if (kind === 'count') return all.map(([, count]) => count);
    if (kind === 'frequency') { const sum = all.reduce((a, [, count]) => a + count, 0); return all.map(([, count]) => count / Math.max(1, sum)); }
    const values = all.map(([number, count]) => (1 + Math.log(count)) * this.rarity[number]), words = ([number]) => number < this.spelled;
    const length = (part) => Math.max(1e-12, Math.sqrt(values.reduce((a, value, at) => a + (words(all[at]) === part ? value ** 2 : 0), 0)));
    const lengths = [length(false), length(true)];
    return values.map((value, at) => value / lengths[Number(words(all[at]))]);
  }
}

// Classes and their probabilities, the likeliest first.
function listed(logp, classes) {
  const probs = [...logp].map(Math.exp), order = probs.map((_, at) => at).sort((a, b) => probs[b] - probs[a]);
  return order.map((at) => `${classes[at]}\t${probs[at].toFixed(4)}`).join('\n');
}

class PictureClassifier {
  static async load(folder, about) {
    return Object.assign(new PictureClassifier(), { about, reads: 'picture', graph: await graph(folder, 'scores') });
  }

  async answer(file) {
    const [rows, columns] = this.about.shape, { plain, height, width } = await pixels(file, this.about.size);
    if (height !== rows || width !== columns) throw new Error(`Expected a picture of ${columns} x ${rows} pixels, as the model was trained on, got ${width} x ${height}; rescale it.`);
    const { logp } = await this.graph({ pixels: new ort.Tensor('uint8', plain, [1, rows, columns, 3]) });
    return { text: listed(logp.data, this.about.classes) };
  }
}

class Filler {
  static async load(folder, about) {
    return Object.assign(new Filler(), { about, vocabulary: await Vocabulary.load(folder, about.vocabulary), graph: await graph(folder, 'pieces') });
  }

  async answer(text) {
    const { gap, mask, sos, eos, banned, max_length: most } = this.about, parts = text.split(gap), last = parts.pop();
    if (!parts.length) throw new Error(`Write ${gap} where a word is missing.`);
    const before = parts.flatMap((part) => [...this.vocabulary.encode(part.replace(/ +$/, '')), mask]); // a gap has the space before it
    const tokens = [sos, ...before, ...this.vocabulary.encode(last), eos];
    if (most !== null && tokens.length > most) throw new Error(`The text has ${tokens.length} pieces, the model reads at most ${most}; shorten it.`);
    const { logp } = await this.graph({ tokens: ints(tokens, [1, tokens.length]), mask: bools(tokens.length) });
    const width = logp.dims[2];
    const filled = tokens.map((token, at) => (token === mask ? likeliest([0], logp.data.subarray(at * width, (at + 1) * width), mask, new Set(banned), 1)[0].token : token));
    return { text: this.vocabulary.decode(filled) };
  }
}

class Forecaster {
  static async load(folder, about) {
    return Object.assign(new Forecaster(), { about, graph: await graph(folder, 'forecast_values') });
  }

  async answer(text) {
    const values = text.replaceAll(',', ' ').split(/\s+/u).filter(Boolean).map((one) => (/^nan$/i.test(one) ? NaN : Number(one)));
    if (!values.length) return { text: '' };
    const { lookback, mean: [mean], std: [std] } = this.about;
    if (values.length < lookback || !values.some(Number.isFinite)) throw new Error(`Expected at least ${lookback} numbers, got ${values.length}; give a longer past.`);
    let last = 0;
    const scaled = values.map((value) => (last = Number.isFinite(value) ? (value - mean) / std : last)).slice(-lookback);
    const { best } = await this.graph({ values: new ort.Tensor('float32', Float32Array.from(scaled), [1, lookback]), which: ints([0], [1]) });
    return { text: [...best.data].map((value) => Number((value * std + mean).toPrecision(6))).join(' ') };
  }
}

const KINDS = { rewrite: Rewriter, continue: Continuer, tagger: Tagger, classifier: Classifier, pictures: PictureClassifier, filler: Filler, forecaster: Forecaster };

export async function load(folder = './') {
  const about = await fetched(`${folder}weft.json`, 'json');
  return KINDS[about.kind].load(folder, about);
}
