"""Training of a unigram vocabulary: pieces that maximise the likelihood of the text as independent draws.

The library's own trainer iterates over a hash map whose order changes from run to run, and with it the
scores and sometimes the pieces. Runs of one recipe must be reproducible, so we do the estimation here and
use the library only to find the best segmentation. Read next: vocabulary.py.
"""

import math
from collections import Counter
from itertools import chain

import numpy as np
from tokenizers import Tokenizer, models

LONGEST = 16  # symbols of a piece
MOST_TYPES = 100_000  # most frequent parts used for training
SEEDS = 8  # initial candidates per requested piece
SHRINK = 0.7  # share of the pieces kept in each round


def train_unigram(parts: Counter[str], characters: list[str], size: int) -> list[tuple[str, float]]:
    """The pieces and their log-probabilities; fewer than `size` if the data has fewer candidates.

    P(x) = Π p(piece) over the segmentation of x that maximises P. Start from all frequent substrings,
    estimate p from the segmentation (hard EM), and remove the pieces with the smallest loss until `size` are
    left: count(piece) · (log p(piece) - log P(best segmentation without it)). Characters are always kept.

    Args:
        parts: counts of the parts of the text; no piece crosses a part's boundaries.
        characters: single symbols that the vocabulary must contain.
        size: number of pieces, including the characters.

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
