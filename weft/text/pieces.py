"""How a text is cut before any vocabulary looks at it, and the frame of a tokenizer.json around it.

A text is cut at spaces, and a word keeps the space before it: " Hello" "," " world". The marker of a
word's beginning is the space itself. After normalising, a space stands between words and nowhere else,
so joining the pieces gives the text back, whatever symbols it holds; a printable marker such as ▁
would be lost where the text itself has one. Letters (with their accents) stay together, digits and
punctuation marks stand alone, so no subword ever glues a comma to a word. Read next: vocabulary.py.
"""

from collections import Counter
from collections.abc import Iterable

from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers

KINDS = ("word", "space", "character", "bpe", "unigram")
SPECIALS = ("<pad>", "<unk>", "<sos>", "<eos>")

_JOINERS = r"\x{200c}\x{200d}"  # inside Persian and Indic words
_CUT = rf" ?\p{{L}}[\p{{L}}\p{{M}}{_JOINERS}]*| ?\p{{N}}| ?[^\p{{L}}\p{{N}} ]| "
# These scripts write no spaces: a "word" of the word vocabulary would be a whole clause.
_ALONE = r"[\p{Han}\p{Hiragana}\p{Katakana}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}]"
_CUT_WORDS = (
    rf" ?{_ALONE}| ?(?:(?!{_ALONE})\p{{L}})(?:(?!{_ALONE})[\p{{L}}\p{{M}}{_JOINERS}])*"
    r"| ?\p{N}| ?[^\p{L}\p{N} ]| "
)
PATTERNS = {"word": _CUT_WORDS, "space": r" ?[^ ]+| ", "character": r"[\s\S]", "bpe": _CUT, "unigram": _CUT}

MOST_TYPES = 4_000_000
"""Different words that counting keeps; beyond it those seen once are forgotten, so that memory stays flat."""


def cutter(kind: str) -> pre_tokenizers.PreTokenizer:
    """What cuts " word" into the parts that no piece crosses."""
    return pre_tokenizers.Split(Regex(PATTERNS[kind]), "isolated")


def count_words(texts: Iterable[str]) -> tuple[Counter[str], int]:
    """How often each word, its space before it, stands in normalised texts; how many texts there are."""
    counts: Counter[str] = Counter()
    number = 0
    for text in texts:
        if text:
            number += 1
            counts.update(text.split(" "))
            if len(counts) > MOST_TYPES:
                counts = Counter({word: count for word, count in counts.items() if count > 1})
    return Counter({" " + word: count for word, count in sorted(counts.items())}), number


def count_parts(words: Counter[str], kind: str) -> Counter[str]:
    """How often each part stands in the words: what a word vocabulary holds, and unigram is trained on."""
    cut = cutter(kind)
    parts: Counter[str] = Counter()
    for word, count in words.items():
        for part, _ in cut.pre_tokenize_str(word):
            parts[part] += count
    return parts


def complete(model: models.Model, kind: str, form: str, lowercase: bool) -> Tokenizer:
    """A tokenizer that does by itself what Weft does around it: what is written to tokenizer.json."""
    steps: list[normalizers.Normalizer] = []
    if form != "none":
        steps.append({"nfc": normalizers.NFC, "nfkc": normalizers.NFKC}[form]())
    if lowercase:
        steps.append(normalizers.Lowercase())
    steps += [normalizers.Replace(Regex(r"\s+"), " "), normalizers.Strip()]
    ends: list[decoders.Decoder] = [decoders.Fuse()]
    if kind != "character":
        steps.append(normalizers.Prepend(" "))
        ends.append(decoders.Strip(" ", 1, 0))
    tokenizer = Tokenizer(model)
    tokenizer.normalizer = normalizers.Sequence(steps)
    tokenizer.pre_tokenizer = cutter(kind)
    tokenizer.decoder = decoders.Sequence(ends)
    tokenizer.add_special_tokens(list(SPECIALS))
    return tokenizer
