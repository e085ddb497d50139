"""A trained model of many language pairs: translates each text into the chosen language.

`together` scores it on each of its pairs, and on pairs that were never trained.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, BinaryIO, ClassVar, NoReturn, Self

from weft.errors import ConfigError
from weft.figures.records import Figure
from weft.metrics.intervals import mean_with_interval
from weft.metrics.metric import ItemKind, Metric
from weft.metrics.scored import BETTER, ScoreWithBaselines, report
from weft.models import Generator
from weft.search.offered import Decoding
from weft.tasks.evaluation import Evaluation
from weft.tasks.multilingual.data import ManyData
from weft.tasks.predictor import Answer, ParsedInput, Place, Predictor, Raw, as_text
from weft.tasks.seq2seq.evaluation import COPIED, PairEvaluation
from weft.tasks.seq2seq.translator import Translator, known_languages
from weft.text.vocabulary import Vocabulary
from weft.wording import plural


class MultilingualTranslator(Predictor[str]):
    """Translates into any language that the model writes; `to` and `of` give the translator of a direction.

    Args:
        model: in evaluation mode.
        data: the pairs, and how a source names its target language.
        vocabulary: of all languages.
        decoding: search settings.
        others: further members of an ensemble.
        scores: whether `weft predict` writes the score of each text before it.

    Example:
        >>> from weft.models import Generator
        >>> from weft.nn import Categorical, RecurrentDecoder, RecurrentEncoder, Tokens
        >>> from weft.tasks.multilingual.data import ManyData
        >>> from weft.search.offered import Decoding
        >>> from weft.text.vocabulary import Vocabulary
        >>> words = Vocabulary.train(["a cat sat"], kind="word", size=None)
        >>> data = ManyData(pairs=("en-de", "en-fr"), train="{pair}", valid="{pair}")
        >>> size = len(words) + data.symbols  # a symbol for each target language
        >>> encoder = RecurrentEncoder(3, sizes=(5,))
        >>> decoder = RecurrentDecoder(3, encoder, sizes=(5,))
        >>> model = Generator(Tokens(size, 3), decoder, Categorical(5, size), encoder=encoder).eval()
        >>> model.head.bias.data[words.encode("a cat")[-1]] = 9.0  # an untrained model that writes "cat"
        >>> decoding = Decoding(search="greedy", max_ratio=0.0, max_extra=2)
        >>> MultilingualTranslator(model, data, words, decoding).to("de").predict("a cat sat")
        'cat cat'
    """

    def __init__(
        self,
        model: Generator,
        data: ManyData,
        vocabulary: Vocabulary,
        decoding: Decoding,
        *,
        others: Sequence[Generator] = (),
        scores: bool = False,
    ) -> None:
        self._others = others
        self._scores = scores
        self._model = model
        self._data = data
        self._vocabulary = vocabulary
        self._decoding = decoding

    def of(self, pair: str) -> Translator:
        """The translator of a direction such as en-de."""
        first = len(self._vocabulary)
        return Translator(
            self._model,
            self._data.asking(self._vocabulary, *pair.split("-")),
            self._vocabulary,
            self._decoding,
            banned=range(first, first + self._data.symbols),
            others=self._others,
            scores=self._scores,
            keeps="parts",
            columns=(pair.partition("-")[0],),
            beside=(pair.partition("-")[2],),
            languages=known_languages(*pair.split("-")),
        )

    def to(self, target: str, source: str | None = None) -> Translator:
        """The translator into one language.

        Args:
            target: the target language.
            source: the source language; required only if the prompt names it.

        Raises:
            ConfigError: the model does not write this language, or the prompt requires a source language.
        """
        if target not in self._data.targets:
            raise ConfigError(f"--target: expected one of {', '.join(self._data.targets)}, got {target}")
        if source is None and self._data.prompt is not None and "{source}" in self._data.prompt:
            raise ConfigError("--source: this model's prompt names the source language; give it")
        return self.of(f"{source or 'any'}-{target}")

    def parse(self, raw: Raw, place: Place) -> str:
        return as_text(raw, place)

    def inputs(self, source: Path | BinaryIO) -> Iterator[ParsedInput[str]]:
        self._refuse()

    def answers(self, inputs: Sequence[str]) -> Iterator[Answer]:
        self._refuse()

    def _refuse(self) -> NoReturn:
        raise ConfigError(f"--target: name the language to write, one of {', '.join(self._data.targets)}")

    def predict(
        self, raw: Any, target: str = "", source: str | None = None, domain: str | None = None
    ) -> Any:
        """The best translation of one text, or those of many; see Predictor.predict."""
        return self.to(target, source).predict(raw, domain) if target else self._refuse()


@dataclass(frozen=True)
class ManyEvaluation(Evaluation):
    """The evaluations of all pairs, trained ones first."""

    pairs: Mapping[str, PairEvaluation]  # trained ones first
    unseen: Sequence[str]  # pairs without training data
    shows: ClassVar[str] = "BLEU of each pair"
    offers: ClassVar[tuple[ItemKind, ...]] = ("texts",)

    def with_metrics(self, metrics: Mapping[str, Metric]) -> Self:
        found = together({pair: one.with_metrics(metrics) for pair, one in self.pairs.items()}, self.unseen)
        return replace(self, scores=found.scores, pairs=found.pairs)

    def text(self, *, full: bool = True) -> str:
        lines = [*self.scores[0].lines(), f"  {'pair':<8}{'BLEU':>6}{'95 %':>13}{'copied':>8}"]
        for pair, one in self.pairs.items():
            bleu, copied = one.scores[0].score, one.scores[0].baselines[COPIED]
            interval = "-" if bleu.low is None else f"{bleu.low:.2f}-{bleu.high:.2f}"
            judged = one.scores[0].judged(one.scores[0].difference(COPIED))
            note = "" if judged == BETTER else f"  <- {judged} the baseline"
            lines.append(f"  {pair:<8}{bleu.value:>6.2f}{interval:>13}{copied:>8.2f}{note}")
            if pair in self.unseen:
                lines.append(f"  {'':<8}never trained (zero-shot)")
            if one.left_out:
                lines.append(f"  {'':<8}{plural(one.left_out, 'pair')} with an empty side left out")
        for pair, one in self.pairs.items() if full else ():
            lines += [f"{pair}: {one.title}", *report(one.scores)]
        return "\n".join([*lines, self.scores[0].verdict()])

    def json(self) -> str:
        """The mean of the pairs; in `pairs` everything of each."""
        return super(ManyEvaluation, replace(self, scores=self.scores[:1])).json()

    def facts(self) -> dict[str, Any]:
        every = {pair: json.loads(one.json()) for pair, one in self.pairs.items()}
        return {"pairs": every, "unseen": list(self.unseen)}

    def figure(self, name: str) -> "Figure":
        from weft.figures.charts import run_figure

        rows = []
        for pair, one in self.pairs.items():
            unseen = ", never trained" if pair in self.unseen else ""
            rows.append(one.scores[0].renamed(f"{pair}{unseen}"))
        return run_figure(rows, title=f"{name}: BLEU, {_after_count(self.title)}", shared=True)


def together(pairs: Mapping[str, PairEvaluation], unseen: Sequence[str]) -> ManyEvaluation:
    """The evaluations of all pairs in one."""
    first = next(iter(pairs.values()))
    every = [
        score.renamed(f"{pair} {score.score.name}") for pair, one in pairs.items() for score in one.scores
    ]
    return ManyEvaluation(
        title=f"{plural(len(pairs), 'pair')}, {_after_count(first.title)}",
        outputs=[f"{pair}\t{line}" for pair, one in pairs.items() for line in one.outputs],
        scores=[_mean([one for pair, one in pairs.items() if pair not in unseen]), *every],
        pairs=pairs,
        unseen=unseen,
        wrong=[reason for one in pairs.values() for reason in one.wrong],
    )


def _after_count(title: str) -> str:
    """A title without the number of pairs and what stands before it."""
    return re.split(r" pairs?(?: \([^()]*\))?, ", title, maxsplit=1)[-1]


def _mean(trained: Sequence[PairEvaluation]) -> ScoreWithBaselines:
    """Mean BLEU of the trained pairs; each pair is tokenised as its references need."""
    bleus = [one.scores[0] for one in trained]
    rows = [one.statistics for one in bleus if one.statistics is not None]
    metrics = [one.metric for one in bleus if one.metric is not None]
    lowest = {
        name: sum(one.baselines[name] for one in bleus) / len(bleus)
        for name in bleus[0].baselines
        if all(name in one.baselines for one in bleus)
    }
    score = mean_with_interval(metrics[0], rows)
    parts = zip(*(one.signature().split("|") for one in metrics), strict=True)
    every = "|".join("+".join(dict.fromkeys(part)) for part in parts)
    signature = score.signature.replace(metrics[0].signature(), every)
    mean = ScoreWithBaselines(score._replace(signature=signature), lowest)
    return mean.renamed(f"mean BLEU of the {plural(len(bleus), 'trained pair')}")
