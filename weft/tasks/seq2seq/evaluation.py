"""The scores of a translator, with signatures, intervals, baselines and scores by length.

Pairs with text on both sides are scored, as in training. Also the log-probability of given translations, line
by line: what `weft evaluate --score` prints, and the perplexity of the references.
Read next: ../../metrics/scored.py; ../../figures/charts.py, which draws the table by length.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np
import torch

from weft.data.batching import filled_groups, length_groups
from weft.data.lines import read_lines
from weft.data.parallel import complete
from weft.errors import ConfigError, DataError, ShapeError
from weft.figures.records import Figure
from weft.metrics import baseline
from weft.metrics.bleu import Bleu, Chrf
from weft.metrics.bylength import by_length, table
from weft.metrics.forms import ScoresInForm, scores_in_form
from weft.metrics.meteor import Meteor
from weft.metrics.metric import ItemKind
from weft.metrics.scored import (
    ScoreWithBaselines,
    fingerprint,
    mean_of,
    of_lines,
    of_rows,
    ratio,
    report,
    scored,
)
from weft.models import Generator
from weft.nn.positions import most_positions
from weft.tasks.evaluation import Batch, Evaluation, mean_loss, perplexity, unanswered
from weft.tasks.predictor import Failure, Place, each, predicted, succeeded
from weft.tasks.seq2seq.encoding import collate_pairs, encode_pairs
from weft.tasks.seq2seq.glossary import TermCounts, read_glossary
from weft.tasks.seq2seq.glossary import kept as terms_kept
from weft.tasks.seq2seq.sections import GenerationEvaluationSettings
from weft.tasks.seq2seq.translator import TranslationAnswer, Translator
from weft.text.characters import named
from weft.text.kept import numbers as numbers_in
from weft.text.kept import wrong_numbers
from weft.wording import plural
from weft.words import unit_of, units

BETTER: Mapping[str, Literal["higher", "lower"]] = {
    "loss": "lower",
    "perplexity": "lower",
    "bleu": "higher",
    "chrf": "higher",
}
"""The scores of a translator's validation."""

COPIED = "source copied"
TOKENS = 4000  # target tokens per batch while perplexity is computed


@dataclass(frozen=True, kw_only=True)
class WrittenEvaluation(Evaluation):
    """The texts that a model wrote, and their scores."""

    seconds: float  # of the search
    left_out: int = 0  # pairs with an empty side, which are not written or scored
    forms: ScoresInForm | None = None  # if references are in another Unicode form than outputs
    shows: ClassVar[str] = "scores, intervals and baselines"
    offers: ClassVar[tuple[ItemKind, ...]] = ("texts",)

    def notes(self) -> list[str]:
        return [] if self.forms is None else [self.forms.line()]

    def facts(self) -> dict[str, Any]:
        """The speed, the number of pairs left out, and the scores in one Unicode form."""
        forms = {} if self.forms is None else {"in_one_form": self.forms._asdict()}
        return {"seconds": self.seconds, "left_out": self.left_out, **forms}


@dataclass(frozen=True, kw_only=True)
class PairEvaluation(WrittenEvaluation):
    """Translations and their scores: BLEU, chrF, METEOR of the corpus and of sentences, perplexity."""

    ratio: float  # length of the outputs divided by that of the references
    terms: TermCounts | None = None  # of the glossary
    lacking: Sequence[str] = ()  # characters of the sources that the vocabulary lacks
    lacked: str = ""  # what became of them
    length: str = "words in the source sentence"  # or characters, in scripts without spaces
    unit: str = "word"  # of the references' length
    shows: ClassVar[str] = "BLEU by source length"

    def notes(self) -> list[str]:
        lines = []
        if self.terms is not None and self.terms.terms:
            count, outputs, references = self.terms
            lines.append(
                f"  terms of the glossary: {outputs:,} of {count:,} kept ({outputs / count:.1%}); "
                f"the references have {references / count:.1%}"
            )
        lines += super().notes()
        if self.lacking:
            lines.append(
                f"  the vocabulary lacks characters of the sources: {named(self.lacking)}; {self.lacked}"
            )
        return lines

    def details(self) -> list[str]:
        rate = (len(self.outputs) - self.left_out) / max(self.seconds, 1e-9)
        unit = self.length.partition(" ")[0]
        return [
            f"  output is {self.ratio:.2f} times as long as the references ({self.unit}s)",
            f"  {rate:.0f} sentences/s, {self.seconds:.1f} s",
            f"BLEU by source length ({unit}):",
            *("  " + row for row in table(self.lengths, unit).splitlines()),
        ]

    def facts(self) -> dict[str, Any]:
        lengths = [
            {"length": row.label, "sentences": row.sentences, "bleu": row.score and row.score.value}
            for row in self.lengths
        ]
        terms = {} if self.terms is None else {"glossary": self.terms._asdict()}
        return {"by_length": lengths, "length_ratio": self.ratio, **super().facts(), **terms}

    def figure(self, name: str) -> "Figure":
        from weft.figures.charts import quality_by_length

        return quality_by_length(self.lengths, title=self.title, x=self.length)


def evaluate(
    translator: Translator,
    sources: Sequence[str],
    references: Sequence[str],
    *,
    title: str,
    train: tuple[Sequence[str], Sequence[str]] | None = None,
    lowercase: bool = False,
) -> PairEvaluation:
    """Score translations; pairs without text on one side are left out, as in training, and counted."""
    pairs = written_pairs(translator, sources, references, title, "pair")
    sources, references, outputs = pairs.sources, pairs.references, pairs.outputs
    bleu, chrf, meteor = Bleu(lowercase=lowercase), Chrf(lowercase=lowercase), Meteor()
    lowest = {COPIED: baseline.copy(sources)}
    if train is not None:
        lowest["translation of the nearest training sentence"] = baseline.nearest(*train, sources)
    found = [
        scored(metric, outputs, references, sources, baselines=lowest) for metric in (bleu, chrf, meteor)
    ]
    found.append(sentences(found[-1], lowest, references))
    found += numbers_kept(translator, sources, outputs)
    glossary, form = translator.decoding.glossary, translator.target.form
    lacking = [character for source in sources for character in translator.lacking(source)]
    return PairEvaluation(
        title=pairs.title,
        outputs=pairs.lines,
        left_out=pairs.left_out,
        scores=[*found, likelihood(translator, sources, references, train and train[1])],
        wrong=pairs.wrong,
        lengths=by_length(bleu, outputs, references, sources),
        seconds=pairs.seconds,
        ratio=_length(outputs) / max(1, _length(references)),
        compared=[of_lines(outputs, references, sources, lowest)],
        terms=None if glossary is None else terms_kept(read_glossary(glossary), sources, outputs, references),
        forms=scores_in_form(
            {metric.name: metric for metric in (bleu, chrf, meteor)}, outputs, references, sources, form=form
        ),
        lacking=lacking,
        lacked=translator.lacked if lacking else "",
        length=f"{unit_of(sources)}s in the source sentence",
        unit=unit_of(references),
    )


def _length(lines: Sequence[str]) -> int:
    return sum(len(units(line)) for line in lines)


def sentences(
    corpus: ScoreWithBaselines, lowest: Mapping[str, Sequence[str]], references: Sequence[str]
) -> ScoreWithBaselines:
    """METEOR as the mean over sentences, which most papers report, from the counts of the corpus's."""
    metric = Meteor(average="sentences").fitted(references)
    assert corpus.statistics is not None
    values = {name: metric.score(lines, references).value for name, lines in lowest.items()}
    rows = metric.by_sentence(corpus.statistics)
    return of_rows(metric, rows, baselines=values, items=corpus.items).renamed("METEOR, mean of sentences")


def numbers_kept(
    translator: Translator, sources: Sequence[str], outputs: Sequence[str]
) -> list[ScoreWithBaselines]:
    """The share of outputs with the numbers of their sources, if any source has numbers."""
    source, target = translator.languages
    rows = [
        not wrong_numbers(text, output, translator.languages)
        for text, output in zip(sources, outputs, strict=True)
        if numbers_in(text, source)
    ]
    if not rows:
        return []
    metric = ratio(
        "numbers kept",
        f"unit:source with numbers|forms:{source or 'any'}-{target or 'any'}",
        higher_is_better=True,
        form="percent",
    )
    return [mean_of(metric, np.array(rows, float), items=fingerprint(sources))]


def likelihood(
    translator: Translator,
    sources: Sequence[str],
    references: Sequence[str],
    train: Sequence[str] | None = None,
) -> ScoreWithBaselines:
    """The perplexity of the references that the model has positions for, and that of token frequencies."""
    pairs = encode_pairs(translator.source, translator.target, sources, references)
    fit = fitting(translator.model, pairs.source, pairs.target)
    read, targets = [pairs.source[n] for n in fit], [pairs.target[n] for n in fit]
    references = [references[n] for n in fit]
    found = scores_of(
        translator.model,
        targets,
        lambda numbers, rows: collate_pairs([read[n] for n in numbers], rows),
    )
    logp, tokens = np.array(found).T
    known = targets if train is None else translator.target.encode_batch(list(train))
    name = "token frequencies of the references" if train is None else "token frequencies in training"
    lowest = {name: perplexity(unigram(known, targets))}
    metric = ratio(
        "perplexity",
        "unit:token of the model's vocabulary, <eos> counted|smoothing:none",
        higher_is_better=False,
        form="perplexity",
    )
    size, items = int(tokens.sum()), fingerprint(references)
    return mean_of(metric, -logp, tokens, baselines=lowest, items=items, size=size)


def unigram(train: Sequence[Sequence[int]], targets: Sequence[Sequence[int]]) -> float:
    """Nats per target token, with <eos>, under training's token frequencies with add-one smoothing."""
    size = 1 + max((max(row, default=0) for rows in (train, targets) for row in rows), default=0)
    counts = np.ones(size + 1)  # the last is <eos>
    counts[:size] += np.bincount([token for row in train for token in row], minlength=size)
    counts[size] += len(train)
    logp = np.log(counts / counts.sum())
    total = sum(float(logp[list(row)].sum() + logp[size]) for row in targets)
    return -total / max(1, sum(len(row) + 1 for row in targets))


def loss_of_pairs(
    model: Generator, sources: Sequence[Sequence[int]], targets: Sequence[Sequence[int]]
) -> tuple[float, list[str]]:
    """Nats per target token, with <eos>, without label smoothing; the model is in evaluation mode.

    Also a sentence about the pairs for which it has no positions, which are left out.
    """
    fit = fitting(model, sources, targets)
    read, written = [sources[n] for n in fit], [targets[n] for n in fit]
    loss = mean_loss(
        model,
        (
            collate_pairs([read[n] for n in numbers], [written[n] for n in numbers])
            for numbers in filled_groups([len(target) + 1 for target in written], TOKENS)
        ),
    )
    if len(fit) == len(sources):
        return loss, []
    said = (
        f"{len(sources) - len(fit):,} of {len(sources):,} validation pairs need more positions than the model"
    )
    return loss, [f"{said} has; the loss leaves them out, and a source that is too long gets an empty output"]


class WrittenPairs(NamedTuple):
    """What a model wrote for the pairs of a data set that have text on both sides."""

    title: str  # the data, the search and the number of sources without an answer
    sources: list[str]
    references: list[str]
    outputs: list[str]
    lines: list[str]  # the outputs, a line for each pair of the data; empty if the pair is left out
    left_out: int  # pairs with an empty side
    wrong: list[str]  # place and reason of each source without an answer
    seconds: float  # of the search


def written_pairs(
    translator: Translator, sources: Sequence[str], references: Sequence[str], title: str, what: str
) -> WrittenPairs:
    """Write an output for each pair that can be scored."""
    kept, lines = complete(sources, references), [""] * len(sources)
    if not kept:
        raise DataError(
            f"{title}: expected pairs with text on both sides, got {plural(len(sources), 'pair')}, "
            "each without a source or a reference; give both"
        )
    left_out = len(sources) - len(kept)
    sources, references = [sources[n] for n in kept], [references[n] for n in kept]
    outputs, wrong, seconds = written(translator, sources, kept, title)
    for number, output in zip(kept, outputs, strict=True):
        lines[number] = output
    title = f"{title}, {counted(len(kept), left_out, what)}, {translator._described}"
    title += unanswered(wrong, "scored as empty")
    return WrittenPairs(title, sources, references, outputs, lines, left_out, wrong, seconds)


class Outputs(NamedTuple):
    """What a model wrote for the sources to score."""

    texts: list[str]  # a line for each source; empty if it could not be answered
    wrong: list[str]  # place and reason of each source without an answer
    seconds: float  # of the search


def written(translator: Translator, sources: Sequence[str], numbers: Sequence[int], title: str) -> Outputs:
    """The best output for each source; one that cannot be answered gets an empty one, which is scored."""
    given = (translator.given(text, Place(title, n + 1)) for text, n in zip(sources, numbers, strict=True))
    answers, wrong, seconds = predicted(translator, given, TranslationAnswer)
    return Outputs(["" if one is None else one.found[0].text for one in answers], wrong, seconds)


def fitting(
    model: Generator, sources: Sequence[Sequence[int]], targets: Sequence[Sequence[int]]
) -> list[int]:
    """The numbers of the pairs for which a model has positions."""
    sides = zip(sources, targets, strict=True)
    found = [n for n, (source, target) in enumerate(sides) if _fits(model, len(source), len(target))]
    if not found:
        raise DataError(
            f"expected pairs that fit into the model's positions, got {len(sources):,} that are all longer; "
            "shorten them, or train a model with a larger max_length"
        )
    return found


def _fits(model: Generator, read: int, written: int) -> bool:
    """Whether a model has positions for so many source tokens, and target tokens without <eos>."""
    most, room = None if model.encoder is None else most_positions(model.encoder), model.max_output(read)
    return (most is None or read <= most) and (room is None or written < room)


POSITIONS = 2000  # target positions whose distributions are held at once


class GivenLine(NamedTuple):
    """A given translation with its log-probability."""

    logp: float | None  # nats, with <eos>; None if the model cannot read the pair
    tokens: int  # with <eos>
    text: str


@dataclass(frozen=True, kw_only=True)
class GivenScores(Evaluation):
    """What `weft evaluate RUN --score FILE` prints."""

    lines: list[GivenLine]
    left_out: int  # pairs with an empty side
    summed: list[GivenLine]  # the lines with a score, of pairs with text on both sides

    def text(self, *, full: bool = True) -> str:
        total = sum(one.logp or 0.0 for one in self.summed)
        tokens = sum(one.tokens for one in self.summed)
        shown = counted(len(self.summed), self.left_out, "translation")
        shown += f", {len(self.wrong):,} that the model cannot score" if self.wrong else ""
        whole = (
            f"{self.title}: {shown}, log-probability {total:.2f} nats, {plural(tokens, 'token')} with <eos>"
        )
        return "\n".join([*self.outputs, whole, *report(self.scores)])

    def facts(self) -> dict[str, Any]:
        rows = [one._asdict() for one in self.lines]
        return {"left_out": self.left_out, "lines": rows}


Batcher = Callable[[list[int], list[list[int]]], Batch]
"""The sources of these numbers, with these targets, as a batch."""


def score_file(
    model: Generator,
    count: int,
    encode: Callable[[list[str]], Sequence[Sequence[int]]],
    batch: Batcher,
    settings: GenerationEvaluationSettings,
    *,
    labels: Sequence[str] = (),
    kept: Sequence[int] | None = None,
) -> GivenScores:
    """The lines of a file as answers to the sources; pairs that are too long have no score and are named."""
    path = settings.score
    assert path is not None
    beside = sorted({*settings.given()} - {"score", "source", "target"})
    if beside:
        raise ConfigError(
            f"--score: cannot be combined with {beside[0]}, because nothing is searched; leave it out"
        )
    given, texts = _given(path, count, labels)
    lines, wrong = list[GivenLine](), list[str]()
    for number, (one, line) in enumerate(zip(_attempts(model, encode(texts), batch), given, strict=True), 1):
        if isinstance(one, DataError | ShapeError):
            wrong.append(Place(str(path), number).why(one))
            lines.append(GivenLine(None, 0, line))
        else:
            lines.append(GivenLine(*one, line))
    kept = range(count) if kept is None else kept
    summed = [lines[number] for number in kept if lines[number].logp is not None]
    if not summed:
        raise DataError(wrong[0] if wrong else "expected pairs with text on both sides", path=path)
    metric = ratio(
        "perplexity", "unit:token with <eos>|given lines", higher_is_better=False, form="perplexity"
    )
    logp, tokens = np.array([one[:2] for one in summed]).T
    outputs = ["" if one.logp is None else f"{one.logp:.4f}\t{one.tokens}\t{one.text}" for one in lines]
    return GivenScores(
        title=str(path),
        outputs=outputs,
        scores=[mean_of(metric, -logp, tokens, baselines={}, size=int(tokens.sum()))],
        lines=lines,
        left_out=count - len(kept),
        wrong=wrong,
        summed=summed,
    )


def _given(path: Path, count: int, labels: Sequence[str]) -> tuple[list[str], list[str]]:
    given = list(read_lines(path))
    if len(given) != count:
        raise DataError(f"expected {count:,} lines, one for each source, got {len(given):,}", path=path)
    texts = given
    if labels:
        texts = [line.partition("\t")[2] for line in given]
        for number, (line, label) in enumerate(zip(given, labels, strict=True), 1):
            if not line.startswith(f"{label}\t"):
                raise DataError(
                    f"expected {label} TAB TEXT, as --output writes it, got {line[:40]!r}",
                    path=path,
                    line=number,
                )
    return given, texts


def scores_of(model: Generator, written: Sequence[Sequence[int]], batch: Batcher) -> list[tuple[float, int]]:
    """The log-probability of each target of its source, in nats, and its tokens; <eos> counts in both."""
    return list(succeeded(_attempts(model, written, batch)))


def _attempts(
    model: Generator, written: Sequence[Sequence[int]], batch: Batcher
) -> list[tuple[float, int] | Failure]:
    """Like `scores_of`, with an error instead of the score of a pair that cannot be read."""
    lengths = [len(row) + 1 for row in written]
    found: list[tuple[float, int] | Failure] = [(0.0, 0)] * len(written)

    def scored(numbers: Sequence[int]) -> list[tuple[float, int]]:
        logp = _logp(model, batch(list(numbers), [list(written[n]) for n in numbers]))
        return [(value, lengths[n]) for n, value in zip(numbers, logp, strict=True)]

    for numbers in length_groups(lengths, POSITIONS):
        for number, one in zip(numbers, each(numbers, scored), strict=True):
            found[number] = one
    return found


def _logp(model: Generator, batch: Batch) -> list[float]:
    here = batch.to(next(model.parameters()).device)
    with torch.inference_mode():
        logp = model.head(model.features(here)).gather(2, here.target_out[..., None])[..., 0]
        values: list[float] = (logp.double() * here.target_mask).sum(1).tolist()
    return values


def counted(kept: int, left_out: int, what: str) -> str:
    """The number of scored pairs, for a title."""
    more = f" ({left_out:,} more left out, with an empty side)" if left_out else ""
    return f"{plural(kept, what)}{more}"
