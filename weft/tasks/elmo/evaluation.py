"""The perplexities of ELMo's two language models, beside that of word frequencies."""

import math

import numpy as np
import torch

from weft.metrics.means import mean_of, ratio
from weft.metrics.scored import fingerprint
from weft.nn.embed.contextual import BothWays, Sentences
from weft.tasks.lexicon import Lexicon
from weft.tasks.running_text.base import ContextEvaluation, Side, perplexity
from weft.tasks.running_text.data import Parts

ROWS = 32


def collate(lexicon: Lexicon, some: list[list[str]]) -> Sentences:
    """Sentences of words as a batch."""
    spelled, mask = lexicon.spell(some)
    return Sentences(spelled, mask, int(mask.sum()) + len(some))


def nats(model: BothWays, lexicon: Lexicon, some: list[list[str]]) -> tuple[float, float]:
    """Nats a word, forward and backward; the end of each sentence counts as a word."""
    order = sorted(some, key=len)
    totals, count = np.zeros(2), 0
    for at in range(0, len(order), ROWS):
        batch = collate(lexicon, order[at : at + ROWS])
        with torch.no_grad():
            both = model.directions(batch.to(model.ends.device))
        totals += [float(both.forward.total), float(both.backward.total)]
        count += batch.target_tokens
    return float(totals[0]) / count, float(totals[1]) / count


def evaluate(
    model: BothWays, lexicon: Lexicon, text: Parts[str], *, title: str, length: int
) -> ContextEvaluation:
    """Both perplexities, beside that of word frequencies; the outputs are log-probabilities of the lines.

    Args:
        model: trained, in evaluation mode.
        lexicon: its words.
        text: its words, at most `length` in a part.
        title: which text.
        length: where lines were cut.
    """
    some = text.parts
    lowest = {"word frequencies": perplexity(_unigram(lexicon, some))}
    signature = (
        f"unit:word with line ends|softmax:full|classes:{lexicon.num_words}|lines of at most {length} words"
    )
    counts = np.array([len(words) + 1 for words in some])
    scores, sides, logp = [], [], []
    for side, rows in zip(("forward", "backward"), _by_word(model, lexicon, some), strict=True):
        metric = ratio(f"{side} perplexity", signature, higher_is_better=False, form="perplexity")
        sums, size = np.array([row.sum() for row in rows]), int(counts.sum())
        items = fingerprint(" ".join(words) for words in some)
        logp.append([-sum(line) for line in text.joined(rows)])
        scores.append(mean_of(metric, sums, counts, baselines=lowest, items=items, size=size))
        read = [np.arange(len(row))[:: 1 if side == "forward" else -1] for row in rows]
        sides.append(Side(side, np.concatenate(read), np.concatenate(rows)))
    outputs = [f"{forward:.4f}\t{backward:.4f}" for forward, backward in zip(*logp, strict=True)]
    return ContextEvaluation(title, outputs, scores, sides, "words read before it")


def _by_word(
    model: BothWays, lexicon: Lexicon, some: list[list[str]]
) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Nats of each word and of the end of each sentence: forward, and backward."""
    order = sorted(range(len(some)), key=lambda n: len(some[n]))
    ahead: list[np.ndarray] = [np.zeros(0)] * len(some)
    back = list(ahead)
    for at in range(0, len(order), ROWS):
        numbers = order[at : at + ROWS]
        with torch.no_grad():
            found, mask = model.nats(collate(lexicon, [some[n] for n in numbers]).to(model.ends.device))
        rows, real = found.double().cpu().numpy(), mask.cpu().numpy()
        for row, number in enumerate(numbers):
            ahead[number] = rows[row][real[row]]
            back[number] = rows[len(numbers) + row][real[len(numbers) + row]]
    return ahead, back


def _unigram(lexicon: Lexicon, some: list[list[str]]) -> float:
    """Nats a word by the frequencies of the training text; the end of a line is as frequent as here."""
    total = sum(lexicon.counts) + 1
    counts = dict(zip(lexicon.words, lexicon.counts, strict=True))
    words = sum(map(len, some))
    ends = len(some) / (words + len(some))
    found = -len(some) * math.log(ends)
    for sentence in some:
        for word in sentence:
            found -= math.log((1 - ends) * counts.get(word, 1) / total)
    return found / (words + len(some))
