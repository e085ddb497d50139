// What a translation keeps of its source: text without letters. Anything else that it lacks is named. Read next: writing.js.
const SIGNS = new Map([...'’‘‚‛′'].map((one) => [one, "'"]).concat([...'“”„‟″'].map((one) => [one, '"']), [...'‐‑‒–—―−'].map((one) => [one, '-'])));

const UNK = 1;

export class Kept {
  constructor(forms, codes, vocabulary, parts) {
    Object.assign(this, { forms: new RegExp(forms, 'g'), codes: new RegExp(codes, 'g'), vocabulary, parts });
    const { model, normalizer } = vocabulary.tokenizer, { order } = vocabulary, own = order?.filter((there, here) => here > 3 && there >= 0) ?? [...model.names.keys()].filter((number) => number > 3);
    this.known = new Set(` ${order && !vocabulary.listed ? '' : own.map((number) => model.names.get(number)).join('')}`);
    this.lost = order ? new Set() : null; // of another program's tokenizer, which may have bytes
    this.shaped = !order ? (text) => vocabulary.normalise(text) : vocabulary.listed ? normalizer : (text) => text;
    this.reads = Boolean(order) || [...this.known].some((one) => /\p{L}/u.test(one));
  }

  has(text) { return [...this.shaped(text)].every((one) => this.known.has(one) || (this.lost && this.found(one))); }

  found(one) {
    if (!this.lost.has(one)) (/\s/.test(one) || !this.vocabulary.encode(one).includes(UNK) ? this.known : this.lost).add(one);
    return this.known.has(one);
  }

  // The text with plain signs and other letter cases for characters that the vocabulary lacks.
  readable(text) {
    if (!this.parts) return text;
    const other = (one) => [one, SIGNS.get(one) ?? one, one.toLowerCase(), one.toUpperCase(), one.normalize('NFKC')].find((form) => this.has(form)) ?? one;
    return [...(this.lost || this.vocabulary.form === 'none' ? text : text.normalize('NFC'))].map((one) => (/\s/.test(one) ? one : other(one))).join('');
  }

  without(text) { return text.replace(this.forms, ' '); }

  unknown(text) { return new Set(!this.parts ? [] : [...this.readable(this.without(text))].filter((one) => !this.has(one))); }

  // Whether a text has no letters to translate, beside placeholders, codes and unknown words.
  whole(text) {
    const unknown = this.unknown(text);
    return this.reads && !this.without(text).replace(this.codes, '0').split(/\s+/).some((word) => /\p{L}/u.test(word) && ![...word].some((one) => unknown.has(one)));
  }

  // What an answer lacks of its text.
  lacking(text, answer) {
    if (!this.parts) return [];
    const found = (one, all) => all.includes(one) && all.splice(all.indexOf(one), 1), given = answer.match(this.forms) ?? [];
    const lost = (text.match(this.forms) ?? []).filter((one) => !found(one, given));
    const codes = this.lostCodes(text, answer), groups = this.numbers(text, answer).filter((one) => !codes.some((code) => code.includes(one)));
    return [...lost, ...codes, ...groups, ...[...this.unknown(text)].filter((one) => !answer.includes(one))];
  }

  // The codes and keys of a text that its answer lacks, beside amounts, which languages write otherwise.
  lostCodes(text, answer) {
    const names = (this.without(text).match(this.codes) ?? []).map((one) => one.split('+').at(-1).trim()).filter((one) => /^[A-Za-z](\S*\d\S*)?$/.test(one));
    return names.filter((one) => !new RegExp(`(?<!\\w)${one.replace(/[.$-]/g, '\\$&')}(?!\\w)`).test(answer));
  }

  // The groups of digits that one of two texts has and the other lacks.
  numbers(text, other) {
    const [wanted, given] = [text, other].map((one) => this.without(one).match(/\d+/g) ?? []);
    return wanted.filter((one) => !given.includes(one) || !given.splice(given.indexOf(one), 1));
  }

  // The numbers of an answer that its text lacks.
  added(text, answer) { return this.parts ? this.numbers(answer, text) : []; }
}
