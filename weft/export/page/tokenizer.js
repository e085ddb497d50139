// Text to numbers and back, by the parts of a tokenizer.json that Weft writes or imports. Read next: vocabulary in weft.js.
// Each part is made once from its settings; what this file lacks is refused when a model is loaded, and by READ in formats/web.py.

const WHITE = '\\t-\\r \\x85\\xa0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000';
const SCRIPTS = /\\p\{(Han|Hiragana|Katakana|Thai|Lao|Khmer|Myanmar|Latin|Cyrillic|Greek|Arabic|Hebrew|Hangul)\}/g;
const escaped = (text) => text.replace(/[.*+?^${}()|[\]\\/-]/g, '\\$&');

// A pattern of the library (Oniguruma) as JavaScript's.
export function pattern({ String: text, Regex: source }) {
  if (text !== undefined) return new RegExp(escaped(text), 'gu');
  let found = source.replaceAll('[\\s\\S]', '[^]').replace(/\\x\{([0-9a-fA-F]+)\}/g, '\\u{$1}').replace(SCRIPTS, '\\p{Script=$1}');
  found = found.replace(/\(\?i:([^()]*)\)/g, (_, inner) => `(?:${inner.replace(/[a-z]/gi, (one) => `[${one.toLowerCase()}${one.toUpperCase()}]`)})`);
  let inside = false, result = '';
  for (let at = 0; at < found.length; at++) {
    const pair = found.slice(at, at + 2);
    if (pair === '\\s') result += inside ? WHITE : `[${WHITE}]`;
    else if (pair === '\\S' && !inside) result += `[^${WHITE}]`;
    else if (pair[0] === '\\') result += pair;
    else {
      if (pair[0] === '[') inside = true;
      if (pair[0] === ']') inside = false;
      result += pair[0];
      continue;
    }
    at++;
  }
  return new RegExp(result, 'gu');
}

const chained = (steps) => (value) => steps.reduce((before, step) => step(before), value);
const made = (kinds, part, inner) => {
  if (!part) return null;
  if (part[inner]) return chained(part[inner].map((one) => made(kinds, one, inner)));
  if (!kinds[part.type]) throw new Error(`This page cannot read the part ${part.type} of the model's tokenizer.json.`);
  return kinds[part.type](part);
};

// ---------------------------------------------------------------- text to text
const NORMALIZERS = {
  NFC: () => (text) => text.normalize('NFC'),
  NFD: () => (text) => text.normalize('NFD'),
  NFKC: () => (text) => text.normalize('NFKC'),
  NFKD: () => (text) => text.normalize('NFKD'),
  Lowercase: () => (text) => text.toLowerCase(),
  Prepend: ({ prepend }) => (text) => (text ? prepend + text : text),
  Strip: ({ strip_left = true, strip_right = true }) => {
    const sides = [...(strip_left ? [`^[${WHITE}]+`] : []), ...(strip_right ? [`[${WHITE}]+$`] : [])].join('|');
    return (text) => text.replace(new RegExp(sides, 'gu'), '');
  },
  StripAccents: () => (text) => text.replace(/\p{M}/gu, ''),
  Replace: ({ pattern: from, content }) => {
    const rule = pattern(from);
    return (text) => text.replace(rule, () => content);
  },
  BertNormalizer: ({ clean_text, handle_chinese_chars, strip_accents, lowercase }) => (text) => {
    if (clean_text) text = [...text].filter((one) => !/[\0\ufffd]|(?![\t\n\r])[\p{Cc}\p{Cf}\p{Cn}\p{Co}]/u.test(one)).map((one) => (/\s/u.test(one) ? ' ' : one)).join('');
    if (handle_chinese_chars) text = text.replace(/[\u4e00-\u9fff\u3400-\u4dbf\u{20000}-\u{2a6df}\u{2a700}-\u{2ceaf}\uf900-\ufaff\u{2f800}-\u{2fa1f}]/gu, ' $& ');
    if (strip_accents ?? lowercase) text = text.normalize('NFD').replace(/\p{Mn}/gu, '');
    return lowercase ? [...text].map((one) => one.toLowerCase()).join('') : text;
  },
};

// ---------------------------------------------------------------- text to parts
function cut(text, rule, behaviour = 'Isolated', invert = false) {
  const parts = [];
  let end = 0;
  const add = (part, matched) => part && parts.push([part, matched !== invert]);
  for (const found of text.matchAll(rule)) {
    if (!found[0]) continue;
    add(text.slice(end, found.index), false);
    add(found[0], true);
    end = found.index + found[0].length;
  }
  add(text.slice(end), false);
  if (behaviour === 'Removed') return parts.filter(([, matched]) => !matched).map(([part]) => part);
  if (behaviour === 'Isolated') return parts.map(([part]) => part);
  const joined = [];
  let before = false;
  parts.forEach(([part, matched], at) => { // MergedWithPrevious, MergedWithNext, Contiguous
    const joins = at && (behaviour === 'MergedWithPrevious' ? matched && !before : behaviour === 'MergedWithNext' ? before && !matched : matched === before);
    if (joins) joined[joined.length - 1] += part; else joined.push(part);
    before = matched;
  });
  return joined;
}

// Bytes as printable characters, as GPT-2 writes them.
const [CHARACTER, BYTE] = (() => {
  const shown = (byte) => (byte >= 33 && byte <= 126) || (byte >= 161 && byte !== 173);
  const forward = [], back = new Map();
  for (let byte = 0, next = 256; byte < 256; byte++) {
    forward.push(String.fromCharCode(shown(byte) ? byte : next++));
    back.set(forward[byte], byte);
  }
  return [forward, back];
})();
const GPT2 = { Regex: "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+" };
const PUNCTUATION = /[!-/:-@[-`{-~\p{P}]/gu;
const each = (split) => (parts) => parts.flatMap(split);

const PRE_TOKENIZERS = {
  Split: ({ pattern: from, behavior, invert }) => { const rule = pattern(from); return each((text) => cut(text, rule, behavior, invert)); },
  ByteLevel: ({ add_prefix_space, use_regex = true }) => {
    const rule = pattern(GPT2), encoder = new TextEncoder();
    return (parts) => parts.flatMap((text, at) => {
      const whole = add_prefix_space && !/^\s/u.test(text) ? ` ${text}` : text;
      return (use_regex ? cut(whole, rule) : [whole]).map((part) => Array.from(encoder.encode(part), (byte) => CHARACTER[byte]).join(''));
    });
  },
  Metaspace: ({ replacement: mark, prepend_scheme = 'always', split = true }) => (parts) => parts.flatMap((text, at) => {
    let whole = text.replaceAll(' ', mark);
    if ((prepend_scheme === 'always' || (prepend_scheme === 'first' && at === 0)) && !whole.startsWith(mark)) whole = mark + whole;
    return split ? cut(whole, new RegExp(escaped(mark), 'gu'), 'MergedWithNext') : [whole];
  }),
  Whitespace: () => { const rule = pattern({ Regex: '[\\p{L}\\p{M}\\p{N}\\p{Pc}]+|[^\\p{L}\\p{M}\\p{N}\\p{Pc}\\s]+' }); return each((text) => text.match(rule) ?? []); },
  WhitespaceSplit: () => { const rule = pattern({ Regex: '\\s+' }); return each((text) => cut(text, rule, 'Removed')); },
  BertPreTokenizer: () => { const rule = pattern({ Regex: '\\s+' }); return each((text) => cut(text, rule, 'Removed').flatMap((part) => cut(part, PUNCTUATION))); },
  Punctuation: ({ behavior }) => each((text) => cut(text, PUNCTUATION, behavior)),
  Digits: ({ individual_digits }) => { const rule = individual_digits ? /\p{N}/gu : /\p{N}+/gu; return each((text) => cut(text, rule)); },
  CharDelimiterSplit: ({ delimiter }) => each((text) => text.split(delimiter).filter(Boolean)),
};

// ---------------------------------------------------------------- a part to pieces
class Pieces { // what all models share: a name for each number
  constructor(vocabulary, unknown) {
    this.numbers = new Map(vocabulary);
    this.names = new Map([...this.numbers].map(([name, number]) => [number, name]));
    this.unknown = unknown === null || unknown === undefined ? undefined : this.numbers.get(unknown);
  }

  orUnknown(name) { return this.numbers.get(name) ?? this.unknown; }
}

class WordLevel extends Pieces {
  constructor(about) { super(Object.entries(about.vocab), about.unk_token); }

  encode(word) { const number = this.orUnknown(word); return number === undefined ? [] : [number]; }

  lacking(word) { return this.numbers.has(word) ? [] : [word]; }
}

class WordPiece extends Pieces {
  constructor(about) {
    super(Object.entries(about.vocab), about.unk_token);
    this.about = about;
  }

  encode(word) {
    const letters = [...word], found = [];
    if (letters.length > (this.about.max_input_chars_per_word ?? 100)) return [this.unknown];
    for (let begin = 0; begin < letters.length;) {
      let end = letters.length, number;
      for (; end > begin; end--) {
        number = this.numbers.get((begin ? this.about.continuing_subword_prefix : '') + letters.slice(begin, end).join(''));
        if (number !== undefined) break;
      }
      if (number === undefined) return [this.unknown];
      found.push(number);
      begin = end;
    }
    return found;
  }
}

class Bpe extends Pieces {
  constructor(about) {
    super(Object.entries(about.vocab), about.unk_token);
    this.about = about;
    this.ranks = new Map(about.merges.map((pair, rank) => [(typeof pair === 'string' ? pair.split(' ') : pair).join('\0'), rank]));
    this.seen = new Map();
  }

  encode(word) {
    let found = this.seen.get(word);
    if (!found) {
      found = this.about.ignore_merges && this.numbers.has(word) ? [this.numbers.get(word)] : this.merged(this.letters(word)).map(([number]) => number);
      if (this.seen.size > 10000) this.seen.clear();
      this.seen.set(word, found);
    }
    return found;
  }

  lacking(word) { return this.letters(word).filter(([, name]) => name === null).map(([, , text]) => text); }

  // [number, piece, text] of each letter; an unknown one is its bytes or the unknown piece.
  letters(word) {
    const { continuing_subword_prefix: inner, end_of_word_suffix: ending, byte_fallback: bytes, fuse_unk: fuse } = this.about;
    const all = [...word], found = [];
    let unknown = false;
    all.forEach((letter, at) => {
      const name = (at && inner ? inner : '') + letter + (at === all.length - 1 && ending ? ending : ''), number = this.numbers.get(name);
      const spelled = number === undefined && bytes ? Array.from(new TextEncoder().encode(name), (byte) => `<0x${byte.toString(16).toUpperCase().padStart(2, '0')}>`) : [];
      if (number !== undefined) found.push([number, name]);
      else if (spelled.length && spelled.every((one) => this.numbers.has(one))) found.push(...spelled.map((one) => [this.numbers.get(one), one]));
      else if (this.unknown !== undefined) {
        if (fuse && unknown) found.at(-1)[2] += letter;
        else found.push([this.unknown, null, letter]);
        unknown = true;
        return;
      }
      unknown = false;
    });
    return found;
  }

  // The earliest learnt merge first; of equal ones the first in the word.
  merged(parts) {
    const inner = this.about.continuing_subword_prefix?.length ?? 0;
    for (;;) {
      let best = Infinity, place = -1;
      for (let at = 0; at + 1 < parts.length; at++) {
        if (parts[at][1] === null || parts[at + 1][1] === null) continue;
        const rank = this.ranks.get(`${parts[at][1]}\0${parts[at + 1][1]}`);
        if (rank < best) [best, place] = [rank, at];
      }
      if (place < 0) return parts;
      const name = parts[place][1] + parts[place + 1][1].slice(inner);
      parts.splice(place, 2, [this.numbers.get(name), name]);
    }
  }
}

class Unigram extends Pieces {
  constructor(about) {
    super(about.vocab.map(([name], number) => [name, number]), null);
    this.unknown = about.unk_id ?? undefined;
    this.bytes = about.byte_fallback;
    this.scores = about.vocab.map(([, score]) => score);
    this.lowest = this.scores.reduce((a, b) => Math.min(a, b), Infinity) - 10;
    this.longest = about.vocab.reduce((most, [name]) => Math.max(most, name.length), 1);
  }

  encode(word) {
    const found = [];
    for (const [number, text] of this.split(word)) {
      if (number === (this.unknown ?? -1)) found.push(...this.spelled(text)); else found.push(number);
    }
    return found;
  }

  lacking(word) { return this.split(word).filter(([number]) => number === this.unknown).map(([, text]) => text); }

  // [number, text] of the likeliest pieces; neighbouring unknown letters are one piece.
  split(word) {
    const size = word.length, score = new Float64Array(size + 1), from = new Int32Array(size + 1).fill(-1), chosen = new Int32Array(size + 1);
    for (let begin = 0; begin < size;) {
      const letter = String.fromCodePoint(word.codePointAt(begin)).length;
      let single = false;
      const offer = (end, value, number) => { if (from[end] < 0 || value > score[end]) { score[end] = value; from[end] = begin; chosen[end] = number; } };
      for (let end = begin + 1; end <= Math.min(size, begin + this.longest); end++) {
        const number = this.numbers.get(word.slice(begin, end));
        if (number === undefined) continue;
        single ||= end === begin + letter;
        offer(end, score[begin] + this.scores[number], number);
      }
      if (!single) offer(begin + letter, score[begin] + this.lowest, this.unknown ?? -1);
      begin += letter;
    }
    const parts = [];
    for (let end = size; end > 0; end = from[end]) parts.push([chosen[end], word.slice(from[end], end)]);
    const found = [], open = this.unknown ?? -1;
    for (const [number, text] of parts.reverse()) {
      if (number === open && found.at(-1)?.[0] === open) found.at(-1)[1] += text; else found.push([number, text]);
    }
    return found;
  }

  spelled(text) {
    const bytes = this.bytes ? Array.from(new TextEncoder().encode(text), (byte) => this.numbers.get(`<0x${byte.toString(16).toUpperCase().padStart(2, '0')}>`)) : [undefined];
    return bytes.every((one) => one !== undefined) ? bytes : this.unknown === undefined ? [] : [this.unknown];
  }
}

const MODELS = { WordLevel, WordPiece, BPE: Bpe, Unigram };

// ---------------------------------------------------------------- pieces to text
const DECODERS = {
  Replace: ({ pattern: from, content }) => { const rule = pattern(from); return (parts) => parts.map((text) => text.replace(rule, () => content)); },
  Fuse: () => (parts) => [parts.join('')],
  Strip: ({ content, start, stop }) => (parts) => parts.map((text) => {
    const letters = [...text];
    let [begin, end] = [0, letters.length];
    while (begin < start && letters[begin] === content) begin++;
    while (letters.length - end < stop && end > begin && letters[end - 1] === content) end--;
    return letters.slice(begin, end).join('');
  }),
  ByteFallback: () => (parts) => { // bytes that are no text become one mark each
    const found = [], strict = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });
    let bytes = [];
    const close = () => {
      if (!bytes.length) return;
      try { found.push(strict.decode(Uint8Array.from(bytes))); } catch { found.push('\ufffd'.repeat(bytes.length)); }
      bytes = [];
    };
    for (const part of parts) {
      const byte = /^<0x([0-9A-Fa-f]{2})>$/.exec(part);
      if (byte) { bytes.push(parseInt(byte[1], 16)); continue; }
      close();
      found.push(part);
    }
    close();
    return found;
  },
  ByteLevel: () => (parts) => {
    const bytes = parts.flatMap((part) => {
      const own = [...part].map((one) => BYTE.get(one));
      return own.includes(undefined) ? [...new TextEncoder().encode(part)] : own;
    });
    return [new TextDecoder('utf-8', { ignoreBOM: true }).decode(Uint8Array.from(bytes))];
  },
  WordPiece: ({ prefix, cleanup }) => (parts) => parts.map((part, at) => {
    const text = at === 0 ? part : part.startsWith(prefix) ? part.slice(prefix.length) : ` ${part}`;
    return cleanup ? tidy(text) : text;
  }),
  Metaspace: ({ replacement: mark, prepend_scheme = 'always' }) => (parts) => parts.map((part, at) => {
    const text = part.replaceAll(mark, ' ');
    return at === 0 && prepend_scheme !== 'never' ? text.replace(/^ /, '') : text;
  }),
  BPEDecoder: ({ suffix }) => (parts) => parts.map((part, at) => part.replaceAll(suffix, at === parts.length - 1 ? '' : ' ')),
};

const tidy = (text) => [[' .', '.'], [' ?', '?'], [' !', '!'], [' ,', ','], [" ' ", "'"], [" n't", "n't"], [" 'm", "'m"], [' do not', " don't"], [" 's", "'s"], [" 've", "'ve"], [" 're", "'re"]]
  .reduce((before, [from, to]) => before.replaceAll(from, to), text);

export class Tokenizer {
  constructor(content) {
    const model = content.model, kind = model.type ?? (model.merges ? 'BPE' : 'WordLevel');
    if (!MODELS[kind]) throw new Error(`This page cannot read vocabularies of the kind ${kind}.`);
    this.model = new MODELS[kind](model);
    this.normalizer = made(NORMALIZERS, content.normalizer, 'normalizers') ?? ((text) => text);
    this.splitter = made(PRE_TOKENIZERS, content.pre_tokenizer, 'pretokenizers') ?? ((parts) => parts);
    this.decoder = made(DECODERS, content.decoder, 'decoders') ?? ((parts) => [parts.join(' ')]);
    const added = content.added_tokens ?? [];
    this.added = new Map(added.map((one) => [one.id, one]));
    this.plain = finder(added.filter((one) => !one.normalized)); // looked for before normalisation
    this.normal = finder(added.filter((one) => one.normalized), this.normalizer);
  }

  // The numbers of a text, without special symbols around it.
  encode(text) {
    return this.plain(text).flatMap(([part, number]) => (number !== undefined ? [number] : this.normal(part && this.normalizer(part)).flatMap(
      ([inner, own]) => (own !== undefined ? [own] : inner ? this.splitter([inner]).flatMap((word) => this.model.encode(word)) : []))));
  }

  // The pieces of a text that the vocabulary lacks, one for each unknown number, in order.
  lacking(text) { return this.splitter([this.normalizer(text)]).flatMap((word) => (word ? this.model.lacking(word) : [])); }

  // The words of a text.
  words(text) { return this.splitter([text]); }

  name(number) { return this.added.get(number)?.content ?? this.model.names.get(number) ?? ''; }

  decode(numbers) {
    const names = numbers.filter((number) => !this.added.get(number)?.special).map((number) => this.name(number));
    return this.decoder(names).join('');
  }
}

// Cuts a text at added symbols: [part] or [symbol, number].
function finder(symbols, normalised = (text) => text) {
  if (!symbols.length) return (text) => [[text]];
  const named = new Map(symbols.map((one) => [normalised(one.content), one]));
  const rule = new RegExp([...named.keys()].sort((a, b) => b.length - a.length).map(escaped).join('|'), 'gu');
  return (text) => {
    const found = [];
    let end = 0;
    for (const one of text.matchAll(rule)) {
      const symbol = named.get(one[0]);
      let [begin, stop] = [one.index, one.index + one[0].length];
      if (begin < end || (symbol.single_word && (/\w$/u.test(text.slice(0, begin)) || /^\w/u.test(text.slice(stop))))) continue;
      if (symbol.lstrip) while (begin > end && /\s/u.test(text[begin - 1])) begin--;
      if (symbol.rstrip) while (stop < text.length && /\s/u.test(text[stop])) stop++;
      if (begin > end) found.push([text.slice(end, begin)]);
      found.push([one[0], symbol.id]);
      end = stop;
    }
    if (end < text.length || !found.length) found.push([text.slice(end)]);
    return found;
  };
}
