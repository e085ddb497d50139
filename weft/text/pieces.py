"""How a text is split before any vocabulary is applied, and the tokenizer.json that does the same.

A text is split at spaces, and a word keeps the space before it: " Hello" "," " world". The space itself
marks the beginning of a word. After normalisation, spaces occur only between words, so joining the pieces
restores the text, whatever symbols it contains; a printable marker such as ▁ would be lost if the text
contained it too. Letters (with their accents) stay together, while digits and punctuation marks are
separate, so no subword joins a comma to a word. Read next: vocabulary.py.
"""

from collections import Counter
from collections.abc import Iterable

from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers

from weft.text.characters import normalise

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

# Python's lower() writes a sigma at the end of a word as ς (Unicode 3.13, Final_Sigma), the
# library's Lowercase does not. Letters that have a case and that the rule does not skip:
_CASED = "[\\p{Lu}\\p{Ll}\\p{Lt}ªºⅠ-ⅿⒶ-ⓩ🄰-🅉🅐-🅩🅰-🆉]"
_FINAL_SIGMA = rf"(?<={_CASED}\p{{Case_Ignorable}}*)Σ(?!\p{{Case_Ignorable}}*{_CASED})"
_WHITE = r"[\s\x1c-\x1f]+"  # what str.split() splits at
_SYMBOL = rf"^({'|'.join(SPECIALS)})$"

MOST_TYPES = 4_000_000
"""Maximum number of distinct words counted; beyond it, words seen once are dropped to save memory."""


def cutter(kind: str) -> pre_tokenizers.PreTokenizer:
    """Splits " word" into parts; no piece crosses their boundaries."""
    return pre_tokenizers.Split(Regex(PATTERNS[kind]), "isolated")


def cut_words(text: str, kind: str, *, form: str, lowercase: bool) -> list[str]:
    """The words of a text without the spaces before them: at punctuation, or for kind "space" at spaces."""
    plain = normalise(text, form=form, lowercase=lowercase)
    if kind == "space":
        return plain.split(" ") if plain else []
    return [part.strip() for part, _ in cutter("word").pre_tokenize_str(plain) if part != " "]


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
    """A tokenizer that includes Weft's normalisation and decoding, to be saved as tokenizer.json.

    The special symbols are no "added tokens", which the library would look for in texts, where "<eos>" is
    text. The decoder leaves them out.
    """
    forms: dict[str, list[normalizers.Normalizer]] = {
        "none": [],
        "nfc": [normalizers.NFC()],
        "nfkc": [normalizers.NFKC()],
    }
    steps = list(forms[form])
    if lowercase:  # can break the form
        steps += [normalizers.Replace(Regex(_FINAL_SIGMA), "ς"), normalizers.Lowercase(), *forms[form]]
    steps += [normalizers.Replace(Regex(_WHITE), " "), normalizers.Strip()]
    if kind != "character":
        steps.append(normalizers.Prepend(" "))
    tokenizer = Tokenizer(model)
    tokenizer.normalizer = normalizers.Sequence([*steps, normalizers.Replace(Regex("^ +$"), "")])
    tokenizer.pre_tokenizer = cutter(kind)
    tokenizer.decoder = decoders.Sequence(
        [
            decoders.Replace(Regex(_SYMBOL), ""),
            decoders.Fuse(),
            decoders.Replace(Regex("^ +| +$"), ""),
            decoders.Replace(Regex(" +"), " "),
        ]
    )
    return tokenizer
