// A vocabulary of Weft: text to its numbers and back; 0 to 3 are padding, unknown, beginning and end. Read next: tokenizer.js.
import { Tokenizer } from './tokenizer.js';

const UNK = 1, EOS = 3;

export const WHITE = /(?:[^\S\ufeff]|[\x1c-\x1f\x85])+/u; // what Python's split() splits at

export class Vocabulary {
  constructor(bytes) {
    const { weft, ...content } = JSON.parse(new TextDecoder().decode(bytes)), pairs = (weft.order ?? []).map((there, here) => [there, here]).filter(([there]) => there >= 0);
    if (!weft.opening) pairs.reverse(); // of a symbol with two roles, a language model predicts the last one
    Object.assign(this, { tokenizer: new Tokenizer(content), numbers: new Map(pairs), ...weft });
    this.listed = content.model.type === 'WordLevel';
    this.size = weft.order?.length ?? this.tokenizer.model.numbers.size;
  }

  normalise(text) {
    const form = this.form.toUpperCase(), shaped = (one) => (form === 'NONE' ? one : one.normalize(form));
    return shaped(this.lowercase ? shaped(text).toLowerCase() : text).split(WHITE).filter(Boolean).join(' ');
  }

  encode(text) {
    if (this.order) { // another program's tokenizer, renumbered
      const found = this.tokenizer.encode(text).map((number) => this.numbers.get(number) ?? UNK);
      return [...this.before, ...found, ...this.after];
    }
    return this.tokenizer.encode(text);
  }

  // The numbers of a text, and its unknown pieces, which are numbered after those of the vocabulary.
  named(text, most) {
    const lacking = this.tokenizer.lacking(text), names = [];
    let at = 0;
    const numbers = this.encode(text).slice(0, most ?? undefined).map((number) => {
      if (number !== UNK) return number;
      const piece = lacking[at++], place = names.indexOf(piece);
      return this.size + (place >= 0 ? place : names.push(piece) - 1);
    });
    return { numbers, names };
  }

  words(text) { return this.tokenizer.words(this.normalise(text)).filter((part) => part !== ' ').map((part) => part.trim()); }

  // A piece as it is shown; `names` are those of unknown pieces.
  piece(number, names = []) { return (names[number - this.size] ?? this.tokenizer.name(this.order ? this.order[number] : number)).replace(/ /g, '▁'); }

  decode(numbers, names = []) {
    if (this.order) return this.exact(numbers).trim();
    return numbers.filter((number) => number > EOS).map((number) => names[number - this.size] ?? this.tokenizer.name(number)).join('').split(WHITE).filter(Boolean).join(' ');
  }

  exact(numbers) { // the text of another program's pieces, with the white space at its ends
    const there = numbers.filter((number) => number > EOS).map((number) => this.order[number]).filter((number) => number >= 0);
    return there.length ? this.tokenizer.decode(there) : '';
  }
}

// The text that a file holds, in UTF-8 or in UTF-16 with a byte order mark; null if it is no text.
export function textIn(content) {
  const [first, second] = new Uint8Array(content), kind = first === 255 && second === 254 ? 'utf-16le' : first === 254 && second === 255 ? 'utf-16be' : 'utf-8';
  try {
    const text = new TextDecoder(kind, { fatal: true }).decode(content);
    return text.includes('\0') ? null : text;
  } catch { return null; }
}
