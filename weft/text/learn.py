"""Learn the model of a vocabulary from word counts, one function per kind.

The tokenizers library's own trainer of unigrams iterates over a hash map whose order changes from run to run,
and with it the scores and sometimes the pieces. Runs of one recipe must be reproducible, so we do the
estimation here and use the library only to find the best segmentation. Read next: vocabulary.py, which uses
the model.
"""

import json
import math
from collections import Counter
from collections.abc import Iterator
from itertools import chain

import numpy as np
from tokenizers import Tokenizer, models, trainers

from weft.errors import ConfigError
from weft.text.pieces import KINDS, SPECIALS, count_parts, cutter

UNKNOWN = SPECIALS[1]
MOST_WORDS = 20_000_000
"""Running words used to count byte-pair merges; the counts of a larger corpus are divided."""

LONGEST_WORD = 1000
"""Longest word that pieces are learnt from, in letters; longer ones are split, because the library's time
grows quadratically with the longest."""

SETTING = "data.vocabulary.size"  # the size in a recipe, which messages name

_FEW = 2  # a merge or piece that occurs once only spells one word


def learn(
    words: Counter[str], texts: int, *, kind: str, size: int | None, min_count: int, progress: bool
) -> models.Model:
    """Learn the model of a vocabulary."""
    if kind not in KINDS:
        raise ConfigError(f"vocabulary kind {kind!r} is unknown; choose one of {', '.join(KINDS)}")
    if not words:
        raise ConfigError("there is no text to learn a vocabulary from; every line is empty")
    if size is None and kind in ("bpe", "unigram"):
        raise ConfigError(f"a {kind} vocabulary needs a size, such as 8000")
    if size is not None and size <= len(SPECIALS):
        raise ConfigError(f"vocabulary size {size} has no room beside the {len(SPECIALS)} special symbols")
    characters = _characters(words)
    if kind == "word":
        return _listed(count_parts(words, kind), size, min_count)
    if kind == "space":
        # A tokenised text may contain "<unk>" as a word; it is the unknown symbol, not a new entry.
        spelt = Counter({word: count for word, count in words.items() if word != " " + UNKNOWN})
        return _listed(spelt, size, min_count)
    if kind == "character":
        # The space before a text's first word is not part of the text.
        return _listed(characters - Counter({" ": texts}), size, min_count)
    assert size is not None
    alphabet = sorted(mark for mark, count in characters.items() if count >= min_count)
    least = len(alphabet) + len(SPECIALS)
    if size < least:
        raise ConfigError(
            f"vocabulary size {size} is too small for {kind}: the data has {len(alphabet)} different "
            f"characters, with the special symbols {least}; set {SETTING} to {least} or more, or raise "
            "min_count to leave out rare characters"
        )
    words = _in_parts(words)
    if kind == "bpe":
        return _bpe(words, alphabet, size, min_count, progress)
    return _unigram(words, alphabet, size)


def _characters(words: Counter[str]) -> Counter[str]:
    counts: Counter[str] = Counter()
    for word, count in words.items():
        for mark in word:
            counts[mark] += count
    return counts


def _in_parts(words: Counter[str]) -> Counter[str]:
    if max(map(len, words)) <= LONGEST_WORD:
        return words
    parts: Counter[str] = Counter()
    for word, count in words.items():
        for start in range(0, len(word), LONGEST_WORD):
            part = word[start : start + LONGEST_WORD]
            parts[part if not start else f" {part}"] += count
    return parts


def _listed(counts: Counter[str], size: int | None, min_count: int) -> models.Model:
    """A model of the most frequent entries, at most `size`, for words and characters."""
    enough = [entry for entry, count in counts.items() if count >= max(min_count, 1)]
    best = sorted(enough, key=lambda entry: (-counts[entry], entry))
    entries = [*SPECIALS, *best][:size]
    return models.WordLevel({entry: number for number, entry in enumerate(entries)}, UNKNOWN)


def _bpe(words: Counter[str], alphabet: list[str], size: int, min_count: int, progress: bool) -> models.Model:
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = cutter("bpe")
    trainer = trainers.BpeTrainer(
        vocab_size=size,
        min_frequency=max(min_count, _FEW),
        special_tokens=list(SPECIALS),
        initial_alphabet=alphabet,
        limit_alphabet=len(alphabet),
        show_progress=progress,
    )
    tokenizer.train_from_iterator(_repeated(words), trainer)
    found = json.loads(tokenizer.to_str())["model"]
    if len(found["vocab"]) < size:
        raise _too_large(size, len(found["vocab"]), "characters, and merges seen twice or more")
    merges = [(left, right) for left, right in found["merges"]]
    return models.BPE(vocab=found["vocab"], merges=merges, unk_token=UNKNOWN, fuse_unk=True)


def _repeated(words: Counter[str]) -> Iterator[str]:
    """Every word repeated by its count, in a few long strings; the library's trainer takes no counts."""
    divisor = -(-words.total() // MOST_WORDS)
    for word, count in words.items():
        left = (count + divisor // 2) // divisor
        while left > 0:
            yield word * min(left, 1000)
            left -= 1000


def _unigram(words: Counter[str], alphabet: list[str], size: int) -> models.Model:
    pieces = train_unigram(count_parts(words, "unigram"), alphabet, size - len(SPECIALS))
    most = len(pieces) + len(SPECIALS)
    if size > most:
        raise _too_large(size, most, "pieces seen twice or more")
    # Special symbols never match in a text, because "<" is always cut off, so their scores are never used.
    return models.Unigram([*((name, 0.0) for name in SPECIALS), *pieces], SPECIALS.index(UNKNOWN), False)


def _too_large(size: int, most: int, what: str) -> ConfigError:
    return ConfigError(
        f"vocabulary size {size} is more than the data can give: {most} {what}, including special symbols; "
        f"set {SETTING} to {most} or less, or give more text"
    )


LONGEST = 16  # symbols of a piece
MOST_TYPES = 100_000  # most frequent parts used for training
SEEDS = 8  # initial candidates per requested piece
SHRINK = 0.7  # share of the pieces kept in each round


def train_unigram(parts: Counter[str], characters: list[str], size: int) -> list[tuple[str, float]]:
    """The pieces and their log-probabilities; fewer than `size` if the data has fewer candidates.

    P(x) = Π p(piece) over the segmentation of x that maximises P. Start from all frequent substrings,
    estimate p from the segmentation (hard EM), and remove the pieces with the smallest loss until `size` are
    left: count(piece) · (log p(piece) - log P(best segmentation without it)). Characters are always kept.

    Source:
        Kudo 2018, "Subword Regularization", section 3.2. SentencePiece uses expected counts; we count only
        the best segmentation.
    """
    types = sorted(parts, key=lambda part: (-parts[part], part))[:MOST_TYPES]
    weights = np.array([parts[part] for part in types], dtype=np.float64)
    known = set(characters)
    seeds = _seeds({part: parts[part] for part in types}, known, max(SEEDS * size, 20_000))
    total = float(sum(seeds.values()) + len(characters))
    scores = {piece: math.log(seeds.get(piece, 1) / total) for piece in chain(characters, seeds)}
    while True:
        counts: dict[str, float] = {}
        for _ in range(2):
            counts = _count(scores, types, weights)
            total = sum(counts.values())
            scores = {piece: math.log(max(count, 0.1) / total) for piece, count in counts.items()}
        if len(scores) <= size:
            break
        keep = max(size, int(SHRINK * len(scores))) - len(characters)
        loss = {
            piece: counts[piece] * (score - _best(piece, scores))
            for piece, score in scores.items()
            if piece not in known
        }
        kept = set(sorted(loss, key=lambda piece: (-loss[piece], piece))[:keep])
        scores = {piece: score for piece, score in scores.items() if piece in known or piece in kept}
    return sorted(scores.items(), key=lambda item: (-item[1], item[0]))


def _seeds(parts: dict[str, int], known: set[str], most: int) -> dict[str, int]:
    """The best substrings seen at least twice, scored by count times length."""
    counts: Counter[str] = Counter()
    for part, count in parts.items():
        size = len(part)
        for start in range(size):
            for end in range(start + 2, min(start + LONGEST, size) + 1):
                counts[part[start:end]] += count
    gains = {
        piece: count * len(piece) for piece, count in counts.items() if count > 1 and known.issuperset(piece)
    }
    best = sorted(gains, key=lambda piece: (-gains[piece], piece))[:most]
    return {piece: gains[piece] for piece in best}


def _count(scores: dict[str, float], types: list[str], weights: np.ndarray) -> dict[str, float]:
    """How often each piece occurs in the best segmentations of the parts."""
    pieces = list(scores)
    tokenizer = Tokenizer(models.Unigram([("<unk>", -1e3), *scores.items()], 0, False))
    ids = [encoding.ids for encoding in tokenizer.encode_batch_fast(types)]
    lengths = np.fromiter(map(len, ids), dtype=np.int64, count=len(ids))
    flat = np.fromiter(chain.from_iterable(ids), dtype=np.int64, count=int(lengths.sum()))
    counts = np.bincount(flat, np.repeat(weights, lengths), len(pieces) + 1)
    return dict(zip(pieces, counts[1:].tolist(), strict=True))


def _best(piece: str, scores: dict[str, float]) -> float:
    """Log-probability of the best segmentation of a piece into two or more other pieces."""
    size = len(piece)
    best = [0.0] + [-math.inf] * size
    for end in range(1, size + 1):
        for start in range(end == size, end):  # never the whole piece itself
            score = scores.get(piece[start:end])
            if score is not None and best[start] + score > best[end]:
                best[end] = best[start] + score
    return best[size]
