// Models that label words, texts and pictures, and vectors of words in context. Read next: weft.js.
import { tensor } from './operators.js';
import { clip, pixels } from './pictures.js';
import { Vocabulary, WHITE } from './vocabulary.js';

const ints = (values, dims) => tensor('int32', dims, Int32Array.from(values));
const trues = (size) => tensor('bool', [1, size], new Uint8Array(size).fill(1));
const content = (bytes) => JSON.parse(new TextDecoder().decode(bytes));
const largest = (values) => values.indexOf(values.reduce((a, b) => Math.max(a, b), -Infinity));

// The numbers of the letters of words [N, L]; of a long word its beginning and its end.
function spelled(words, numbers, longest) {
  const half = Math.floor(longest / 2), cut = words.map((word) => { const all = [...word]; return all.length <= longest ? all : [...all.slice(0, half), ...all.slice(-half)]; });
  const width = Math.max(...cut.map((word) => word.length)), found = tensor('int32', [words.length, width]);
  cut.forEach((word, row) => word.forEach((letter, at) => { found.data[row * width + at] = numbers.get(letter) ?? 1; }));
  return found;
}

// Classes with their probabilities, the likeliest first.
function listed(logp, classes) {
  const probs = Array.from(logp, Math.exp);
  return [...probs.keys()].sort((a, b) => probs[b] - probs[a]).map((at) => ({ label: classes[at], prob: probs[at] }));
}

// Runs a graph; `inside` adds the gates of its recurrent layers to the answer.
function run(graph, given, { inside } = {}) {
  const gates = [], out = graph.run(given, inside ? (seen) => gates.push(seen) : undefined);
  return { out, inside: inside ? { encoder: gates } : undefined };
}

export class Tagger {
  constructor(given) {
    const about = given.settings, lexicon = content(given.file(about.lexicon)), numbers = (names) => new Map(names.map((name, at) => [name, at + 2]));
    Object.assign(this, { about, lexicon, word: numbers(lexicon.words), letter: numbers(lexicon.letters), graph: given.graph('scores') });
  }

  async answer(text, options) {
    const words = text.split(WHITE).filter(Boolean);
    if (!words.length) return { text: '', words: [] };
    const known = words.map((word) => this.word.get(this.lexicon.lowercase ? word.toLowerCase() : word) ?? 1), size = words.length, { tags } = this.lexicon;
    const { out: { scores }, inside } = run(this.graph, { words: ints(known, [1, size]), letters: spelled(words, this.letter, this.about.letters), which: ints(words.keys(), [1, size]), mask: trues(size) }, options);
    const table = words.map((_, at) => [...scores.data.subarray(at * tags.length, (at + 1) * tags.length)]), best = this.about.crf ? this.viterbi(table) : table.map(largest);
    const found = words.map((word, at) => {
      const most = Math.max(...table[at]), sum = table[at].reduce((a, score) => a + Math.exp(score - most), 0);
      return { word, tag: tags[best[at]], prob: this.about.crf ? undefined : Math.exp(table[at][best[at]] - most) / sum };
    });
    return { text: found.map(({ word, tag }) => `${word}\t${tag}`).join('\n'), words: found, inside };
  }

  viterbi([first, ...rest]) {
    const { begin, end, transitions } = this.about.crf, origins = [];
    let value = first.map((score, tag) => score + begin[tag]);
    for (const row of rest) {
      const from = row.map((_, to) => value.map((one, tag) => one + transitions[tag][to]));
      origins.push(from.map(largest));
      value = row.map((score, to) => score + Math.max(...from[to]));
    }
    const path = [largest(value.map((one, tag) => one + end[tag]))];
    for (const origin of origins.reverse()) path.push(origin[path.at(-1)]);
    return path.reverse();
  }
}

export class Classifier {
  constructor(given) {
    const about = given.settings;
    Object.assign(this, { about, graph: given.graph('scores'), vocabulary: new Vocabulary(given.file(about.vocabulary)) });
    if (!about.bag) return;
    const items = content(given.file(about.bag.items));
    this.item = new Map(items.items.map((item, at) => [JSON.stringify(item), at + 1]));
    this.spelled = items.items.findIndex((item) => typeof item[0] === 'string') + 1 || Infinity;
    this.rarity = [0, ...items.documents].map((count) => Math.log((1 + (items.texts ?? 0)) / (1 + count)) + 1);
  }

  async answer(text, options) {
    if (!text.trim()) throw new Error('The text is empty; write one.');
    const [before, after] = this.about.frame ?? [[], []]; // exported before frames were
    let tokens = [...before, ...this.vocabulary.encode(text).slice(0, this.about.max_length), ...after], weights = [0];
    const pieces = tokens.map((number) => this.vocabulary.piece(number));
    if (this.about.bag) {
      const counts = this.counted(tokens, text);
      if (counts.size) weights = this.weighed(counts);
      tokens = [...counts.keys()];
    }
    if (!tokens.length) tokens = [0];
    const given = { tokens: ints(tokens, [1, tokens.length]), mask: trues(tokens.length) };
    if (this.about.bag) given.weights = tensor('float32', [1, tokens.length], Float32Array.from(weights));
    const { out: { logp }, inside } = run(this.graph, given, options), probs = listed(logp.data, this.about.classes), { separator, thresholds, classes } = this.about;
    const labels = separator === null ? [probs[0].label] : classes.filter((_, at) => Math.exp(logp.data[at]) >= thresholds[at]);
    return { text: labels.join(separator ?? ''), labels, probs, pieces, inside };
  }

  counted(tokens, text) {
    const { bag } = this.about, row = bag.edges ? [2, ...tokens, 3] : tokens, found = [];
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

export class PictureClassifier {
  constructor(given) {
    Object.assign(this, { about: given.settings, reads: 'picture', graph: given.graph('scores') });
  }

  async answer(file) {
    const { shape, size, frames, classes } = this.about, [rows, columns] = shape.slice(-3);
    const { plain, height, width } = shape.length === 4 ? await clip(file, size, shape[0], frames === null) : await pixels(file, size);
    if (height !== rows || width !== columns) throw new Error(`Expected a picture of ${columns} x ${rows} pixels, as the model was trained on, got ${width} x ${height}; rescale it.`);
    const { logp } = this.graph.run({ pixels: tensor('uint8', [1, ...shape], plain) }), probs = listed(logp.data, classes);
    return { text: probs[0].label, labels: [probs[0].label], probs };
  }
}

export class Comparer {
  constructor(given) {
    const about = given.settings;
    Object.assign(this, { about, graph: given.graph('layers'), vocabulary: new Vocabulary(given.file(about.vocabulary)), letter: new Map(about.letters.map((letter, at) => [letter, at + 2])) });
  }

  // WORD TAB SENTENCE TAB SENTENCE: the cosine of the word's two vectors in each layer; a sentence: its vectors.
  async answer(text) {
    const cells = text.split('\t');
    if (cells.length !== 3) {
      const { words, layers } = this.vectors(text), vectors = layers.at(-1).map((row) => row.map((value) => Number(value.toFixed(5))));
      return { text: JSON.stringify({ words, vectors }), words, layers };
    }
    const [word] = this.vocabulary.words(cells[0]), [one, other] = cells.slice(1).map((sentence) => {
      const { words, layers } = this.vectors(sentence), at = words.indexOf(word);
      if (at < 0) throw new Error(`“${cells[0]}” is no word of “${sentence}”; give two sentences that contain it.`);
      return layers.map((rows) => rows[at]);
    });
    const dot = (a, b) => a.reduce((sum, value, at) => sum + value * b[at], 0), cosines = one.map((a, layer) => dot(a, other[layer]) / Math.sqrt(dot(a, a) * dot(other[layer], other[layer])));
    return { text: [cells[0], ...cosines.map((value) => value.toFixed(4))].join('\t'), word, cosines };
  }

  vectors(text) {
    const words = this.vocabulary.words(text), size = words.length;
    if (!size) throw new Error('Expected a sentence with words.');
    if (size > this.about.most) throw new Error(`Expected at most ${this.about.most} words, got ${size}.`);
    const { layers } = this.graph.run({ letters: spelled(words, this.letter, this.about.longest), which: ints(words.keys(), [1, size]), mask: trues(size) }), [, depth, , width] = layers.dims;
    const row = (layer, at) => [...layers.data.subarray((layer * size + at) * width, (layer * size + at + 1) * width)];
    return { words, layers: Array.from({ length: depth }, (_, layer) => words.map((_word, at) => row(layer, at))) };
  }
}
