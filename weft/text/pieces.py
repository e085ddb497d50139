"""How a text is split before any vocabulary is applied, and the tokenizer.json that does the same.

A text is split at spaces, and a word keeps the space before it: " Hello" "," " world". The space itself
marks the beginning of a word. After normalisation, spaces occur only between words, so joining the pieces
restores the text, whatever symbols it contains; a printable marker such as ▁ would be lost if the text
contained it too. Letters (with their accents) stay together, while digits and punctuation marks are
separate, so no subword joins a comma to a word. Read next: vocabulary.py.
"""

from collections import Counter
from collections.abc import Iterable
from typing import Any

from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers

KINDS = ("word", "space", "character", "bpe", "unigram")
SPECIALS = ("<pad>", "<unk>", "<sos>", "<eos>")

_JOINERS = r"\x{200c}\x{200d}"  # inside Persian and Indic words
_CUT = rf" ?\p{{L}}[\p{{L}}\p{{M}}{_JOINERS}]*| ?\p{{N}}| ?[^\p{{L}}\p{{N}} ]| "
# Scripts without spaces: a "word" of the word vocabulary would be a whole clause.
_ALONE = r"[\p{Han}\p{Hiragana}\p{Katakana}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}]"
_CUT_WORDS = (
    rf" ?{_ALONE}| ?(?:(?!{_ALONE})\p{{L}})(?:(?!{_ALONE})[\p{{L}}\p{{M}}{_JOINERS}])*"
    r"| ?\p{N}| ?[^\p{L}\p{N} ]| "
)
PATTERNS = {"word": _CUT_WORDS, "space": r" ?[^ ]+| ", "character": r"[\s\S]", "bpe": _CUT, "unigram": _CUT}

MOST_TYPES = 4_000_000
"""Maximum number of distinct words counted; beyond it, words seen once are dropped to save memory."""


def cutter(kind: str) -> pre_tokenizers.PreTokenizer:
    """Splits " word" into parts; no piece crosses their boundaries."""
    return pre_tokenizers.Split(Regex(PATTERNS[kind]), "isolated")


def count_words(texts: Iterable[str]) -> tuple[Counter[str], int]:
    """Counts of words (with leading space) in normalised texts, and the number of non-empty texts."""
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
    """Counts of parts of words: the entries of a word vocabulary, and the training data of unigram."""
    cut = cutter(kind)
    parts: Counter[str] = Counter()
    for word, count in words.items():
        for part, _ in cut.pre_tokenize_str(word):
            parts[part] += count
    return parts


def complete(model: models.Model, kind: str, form: str, lowercase: bool) -> Tokenizer:
    """A tokenizer that includes Weft's normalisation and decoding, to be saved as tokenizer.json."""
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


def listed(ids: Any) -> list[int]:
    """Numbers of a tensor, an array or any iterable, as a list."""
    return ids.tolist() if hasattr(ids, "tolist") else list(ids)
