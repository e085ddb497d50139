"""Texts of several sentences: each sentence is translated, and what lies between them is kept.

A line becomes sentences and a line again; a document also needs the links between the words of a sentence and
those of its translation, by the model's own attention.
Read next: translator.py; ../../text/sentences.py, which splits; ../../text/segments.py.
"""

from collections.abc import Iterator, Sequence
from itertools import islice

from weft.errors import ConfigError, DataError, ShapeError
from weft.tasks.predictor import Answer, Failure, Place, Predictor, Raw, succeeded
from weft.tasks.seq2seq.translator import NOTHING, BestTexts, SearchResult, TranslationAnswer, Translator
from weft.text.segments import Sentence, WrittenSentence, proportional
from weft.text.sentences import SplitText, split, splitter


class SentenceTranslator(Predictor[str]):
    """Splits lines into sentences, by the rules of English if those of the source are unknown."""

    def __init__(self, translator: Translator, source: str, target: str) -> None:
        splitter()
        for name in ("prefix", "require"):
            if getattr(translator.decoding, name):
                raise ConfigError(
                    f"--{name}: it would apply to every sentence of a line; leave out --split-sentences"
                )
        self.translator = translator
        self.languages = (source, target)
        self.lines, self.window, self.piped = translator.lines, translator.window, translator.piped
        self.columns = translator.columns

    def parse(self, raw: Raw, place: Place) -> str:
        return self.translator.parse(raw, place)

    def answers(self, inputs: Sequence[str]) -> Iterator[Answer]:
        return succeeded(self.attempts(inputs))

    def attempts(self, inputs: Sequence[str]) -> Iterator[Answer | Failure]:
        """Like Predictor.attempts: a line with a sentence that fails fails as a whole."""
        cut = [split(line, self.languages[0]) for line in inputs]
        found = iter(self.translator.attempts([text for one in cut for text in one.texts]))
        for one in cut:
            answers = list(islice(found, len(one.texts)))
            failed = [answer for answer in answers if isinstance(answer, DataError | ShapeError)]
            yield failed[0] if failed else LineAnswer(self, one, answers)  # type: ignore[arg-type]

    def lacking(self, value: str) -> Sequence[str]:
        return self.translator.lacking(value)

    @property
    def lacked(self) -> str:  # type: ignore[override]
        """What becomes of characters that the vocabulary lacks."""
        return self.translator.lacked

    def check_figures(self, *, alignments: bool) -> None:
        """Refuse pictures: each would show one sentence."""
        if not alignments:
            raise ConfigError("--pictures: a picture shows one sentence; leave out --split-sentences")
        self.translator.check_figures(alignments=True)


class LineAnswer(BestTexts):
    """The translations of a line; the k-th joins the k-th of each sentence, or its last one."""

    def __init__(
        self, splitting: SentenceTranslator, cut: SplitText, answers: Sequence[TranslationAnswer]
    ) -> None:
        self._cut = cut
        self._answers = answers
        rows = [answer.found for answer in answers]
        found = [
            NOTHING._replace(
                text=cut.joined([one.text for one in kept], splitting.languages[1]),
                score=sum(one.score for one in kept) / max(1, len(kept)),
            )
            for kept in (
                [row[min(number, len(row) - 1)] for row in rows]
                for number in range(max(map(len, rows), default=1))
            )
        ]
        translator = splitting.translator
        super().__init__(found, translator.decoding.nbest, scores=translator.scores)

    @property
    def lost(self) -> str:  # type: ignore[override]
        return "; ".join(one.lost for one in self._answers if one.lost)

    def alignment(self) -> str:
        """The pairs of all sentences, counted through the line."""
        pairs, source, target = [], 0, 0
        for text, answer in zip(self._cut.texts, self._answers, strict=True):
            for pair in answer.alignment().split():
                left, right = map(int, pair.split("-"))
                pairs.append(f"{left + source}-{right + target}")
            source += len(text.split())
            target += len(answer.found[0].text.split())
        return " ".join(pairs)


def translated(
    translator: Translator, sentences: Sequence[Sentence], wrong: list[str]
) -> Iterator[WrittenSentence]:
    """The best translation of each sentence; one that cannot be translated stays as it is."""
    answers = translator.attempts([one.text for one in sentences])
    for sentence, answer in zip(sentences, answers, strict=True):
        if isinstance(answer, DataError | ShapeError):
            wrong.append(f"{sentence.text[:60]!r}: {answer}")
            yield WrittenSentence(sentence.text, proportional(sentence.text, sentence.text))
        else:
            assert isinstance(answer, TranslationAnswer)
            yield written(translator, sentence, answer.found[0])


def written(translator: Translator, sentence: Sentence, found: SearchResult) -> WrittenSentence:
    """A translation as a document needs it."""
    links = translator.links(sentence.text, found) if sentence.linked else None
    lacking = tuple(translator.lacking(sentence.text))
    return WrittenSentence(found.text, links, found.lost, lacking, translator.lacked if lacking else "")
