"""A trained transcriber: writes the text of recordings, and shows where it attended.

`evaluate` gives error rates with counts and intervals, next to the most frequent transcript.

Read next: data.py, which makes batches; ../seq2seq/batch_search.py.
"""

import io
import math
import wave
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import islice, repeat
from pathlib import Path
from typing import Annotated, Any, BinaryIO, ClassVar

import numpy as np
import torch
from torch import Tensor

from weft.data.audio import SPOKEN, Sound, read_paths, read_sound
from weft.data.held import held, name_of
from weft.errors import ConfigError, DataError
from weft.figures.records import Figure, Heard
from weft.metrics.accuracy import Accuracy
from weft.metrics.bylength import by_length
from weft.metrics.forms import scores_in_form
from weft.metrics.scored import of_lines, scored
from weft.metrics.wer import Cer, ErrorRate, Wer
from weft.models import Generator
from weft.nn.embed.audio import LEAST, mel_filters, points_of
from weft.search.hypotheses import to_lists
from weft.search.offered import GRAPHS, Decoding, setting
from weft.search.trace import Trace
from weft.setting_types import Bounds
from weft.tasks import predictor
from weft.tasks.answer_list import AnswerList
from weft.tasks.evaluation import unanswered
from weft.tasks.export import SCORED, ModelExport, Score, ragged_mask
from weft.tasks.inspection import Inspection
from weft.tasks.predictor import Json, ParsedInput, Place, Raw, Reads, predicted, read_each
from weft.tasks.seq2seq.batch_search import BatchSearch
from weft.tasks.seq2seq.evaluation import WrittenEvaluation
from weft.tasks.seq2seq.graphs import export_generator
from weft.tasks.seq2seq.inspection import decoded
from weft.tasks.seq2seq.translator import BestTexts, SearchResult, attention, results, texts_of
from weft.tasks.speech.data import (
    FrameSettings,
    Recording,
    SpeechData,
    collate_recordings,
    cuts,
    pad_frames,
    parts_of,
)
from weft.text.vocabulary import EOS, PAD, SOS, UNK, Vocabulary
from weft.wording import kind_of, plural
from weft.words import spaced

WINDOW = 256  # recordings per sort by length


@dataclass(frozen=True, kw_only=True)
class SpeechDecoding(Decoding):
    """Search settings for transcripts: `Decoding` with a length limit that suits frames."""

    max_ratio: Annotated[float, Bounds(ge=0, le=1_000)] = setting(
        0.25, "Transcripts have at most max_ratio * frames + max_extra tokens.", programs=GRAPHS
    )


class TranscriptAnswer(BestTexts):
    """The transcripts of a recording with frames [S, F]."""

    def __init__(self, transcriber: "Transcriber", frames: np.ndarray, found: Sequence[SearchResult]) -> None:
        super().__init__(found, transcriber.decoding.nbest, scores=transcriber._scores)
        self._transcriber = transcriber
        self._frames = frames

    def figure(self) -> "Figure":
        from weft.figures.series import heard_figure

        best = self.found[0]
        return heard_figure(self._transcriber.align(self._frames, best.tokens), title=best.text)


class Transcriber(predictor.Predictor[np.ndarray]):
    """Transcribes recordings.

    Args:
        model: in evaluation mode, on its device.
        vocabulary: of the transcripts.
        sound: settings of the frames.
        decoding: search settings.
        others: further members of an ensemble.
        scores: whether `weft predict` writes the score of each transcript.
        longest: longer recordings are cut at pauses, in seconds.

    Example:
        >>> from functools import partial
        >>> from weft.data.audio import Sound
        >>> from weft.nn import Pyramid
        >>> from weft.tasks.speech.data import FrameSettings
        >>> from weft.tasks.speech.task import SpeechModel
        >>> from weft.text.vocabulary import Vocabulary
        >>> words = Vocabulary.train(["a cat sat"], kind="word", size=None)
        >>> sound = FrameSettings(rate=8000, bins=16)
        >>> encoder = partial(Pyramid, sizes=(8, 8), factors=(2, 2))
        >>> model = SpeechModel(encoder=encoder).build(sound.bins, len(words)).eval()
        >>> model.head.bias.data[words.encode("a cat")[-1]] = 99.0  # an untrained model that writes "cat"
        >>> decoding = SpeechDecoding(search="greedy", max_ratio=0.0, max_extra=2)
        >>> Transcriber(model, words, sound, decoding).predict(Sound(np.zeros(4000, np.float32), 8000))
        'cat cat'
    """

    draws = True
    reads: ClassVar[Reads] = "sound"
    file_columns: ClassVar = SPOKEN[:2]
    linewise = False
    window = WINDOW

    def __init__(
        self,
        model: Generator,
        vocabulary: Vocabulary,
        sound: FrameSettings,
        decoding: Decoding,
        *,
        others: Sequence[Generator] = (),
        scores: bool = False,
        longest: float = math.inf,
    ) -> None:
        self.model = model
        self.vocabulary = vocabulary
        self._longest = longest
        self._sound = sound
        self.decoding = decoding
        self.lines = decoding.nbest
        self._scores = scores
        self._search = BatchSearch([model, *others], vocabulary, decoding, (PAD, UNK, SOS))
        self._random: torch.Generator = self._search.seeded()  # shared by all answers

    def parse(self, raw: Raw, place: Place) -> np.ndarray:
        """The frames [S, F] of a file or its bytes, of samples and their rate, or frames themselves."""
        if isinstance(raw, Sound):
            return self._sound.of(raw)
        if isinstance(raw, str | Path):
            return self._read(Path(raw))
        if isinstance(raw, np.ndarray) and raw.ndim == 2:
            return raw
        if not isinstance(raw, bytes):
            wanted = "expected a recording: its file, bytes, samples or frames"
            raise place.refuse(f"{wanted}, got {kind_of(raw)}")
        with held(raw, str(place)) as path:
            return self._read(path)

    def is_one(self, raw: Raw) -> bool:
        if isinstance(raw, np.ndarray):
            return raw.ndim == 2 and raw.dtype != object
        return isinstance(raw, Sound) or super().is_one(raw)

    def inputs(self, source: Path | BinaryIO) -> Iterator[ParsedInput[np.ndarray]]:
        """A recording, or a list with the name of one per line."""
        name = name_of(source)
        files = ((path, Place(name, number)) for number, path in read_paths(source))
        return read_each(source, files, self._read)

    def is_header(self, cells: Sequence[str]) -> bool:
        return SPOKEN.names(cells)

    def answers(self, inputs: Sequence[np.ndarray]) -> Iterator[TranscriptAnswer]:
        cut = [parts_of(one, self._sound, self._longest) for one in inputs]
        parts = [part for one in cut for part in one]
        texts: dict[int, list[SearchResult]] = {}
        order = sorted(range(len(parts)), key=lambda n: -len(parts[n]))
        for at in range(0, len(order), self.decoding.batch_rows):
            numbers = order[at : at + self.decoding.batch_rows]
            frames, mask = pad_frames([parts[n] for n in numbers])
            found = self._search(frames, mask, chance=self._random)
            texts.update(zip(numbers, results(found, repeat(self.vocabulary), self.decoding), strict=False))
        every = iter(texts[n] for n in range(len(parts)))
        for one, own in zip(inputs, cut, strict=True):
            ranks = zip(*islice(every, len(own)), strict=False)
            yield TranscriptAnswer(self, one, [_joined(rank) for rank in ranks])

    def check_figures(self, *, alignments: bool) -> None:
        if alignments:
            super().check_figures(alignments=True)
        self.align(np.zeros((50, self._sound.bins), np.float32), [])

    def value(self, answer: TranscriptAnswer) -> str:
        return str(answer.found[0].text)

    def _read(self, path: Path) -> np.ndarray:
        return self._sound.of(read_sound(path))

    def transcribe(self, recordings: Iterable[np.ndarray | str | Path]) -> AnswerList[list[SearchResult]]:
        """Like `predict` of many recordings, with the n best transcripts of each and their scores."""
        return self.listed(recordings, lambda one: one.found, texts_of)

    def align(self, frames: np.ndarray, tokens: Sequence[int]) -> Heard:
        """The model's attention to frames [S, F] while writing these tokens.

        Raises:
            ConfigError: the model has no attention.
        """
        encoder = self.model.encoder
        assert encoder is not None
        width = -(-len(frames) // encoder.stride)
        weights, _ = attention(self.model, collate_recordings([frames], [list(tokens)]), width)
        return Heard(
            frames.astype(np.float32),
            weights[: len(tokens) + 1],
            self.vocabulary.pieces([*tokens, EOS]),
            encoder.stride,
            self._sound.hop,
        )


def _joined(parts: Sequence[SearchResult]) -> SearchResult:
    if len(parts) == 1:
        return parts[0]
    text = " ".join(one.text for one in parts if one.text)
    tokens = [token for one in parts for token in one.tokens]
    score = sum(one.score for one in parts) / len(parts)
    return SearchResult(text, score, sum(one.logp for one in parts), tokens)


def inspect_recording(transcriber: Transcriber, frames: np.ndarray, name: str) -> Inspection:
    """The transcripts of a recording with frames [S, F], and their search."""
    encoder, trace = transcriber.model.encoder, Trace()
    assert encoder is not None
    found = transcriber._search(*pad_frames([frames]), trace)
    width = -(-len(frames) // encoder.stride)
    shown = decoded(
        transcriber.model,
        transcriber.vocabulary,
        found,
        trace,
        lambda tokens: collate_recordings([frames], [tokens]),
        text=name,
        width=width,
    )
    hop = encoder.stride * transcriber._sound.hop
    try:
        heard = transcriber.align(frames, to_lists(found, EOS)[0][0])
    except ConfigError:  # a model without attention: only the frames are shown
        nothing = np.zeros((0, width), np.float32)
        heard = Heard(frames.astype(np.float32), nothing, [], encoder.stride, transcriber._sound.hop)
    return replace(
        shown,
        source=[f"{n * hop:.2f} s" for n in range(width)],
        chosen_what="each character of the best transcript, given those before it",
        heard=heard,
    )


def spelled(transcriber: Transcriber, text: str) -> str:
    """A reference in the vocabulary's spelling, in lower case if the vocabulary is."""
    return " ".join((text.lower() if transcriber.vocabulary.lowercase else text).split())


FILTERS = "filters.npy"
SEED = 1


def export_transcriber(transcriber: Transcriber, data: SpeechData) -> ModelExport:
    """What `weft export` writes for a transcriber; validation recordings are of `data`."""
    model, sound = transcriber.model, transcriber._sound
    assert model.encoder is not None
    stride = model.encoder.stride
    examples = _frames(3, 5 * stride - 1, sound.bins), _frames(2, 8 * stride, sound.bins)
    length, how = round(sound.window * sound.rate), cuts(sound, transcriber._longest)
    settings: dict[str, Json] = {
        "rate": sound.rate,
        "window": length,
        "hop": round(sound.hop * sound.rate),
        "cuts": None if how is None else {**how},
        "normalise": sound.normalise,
        "least": LEAST,
        "filters": FILTERS,
    }
    form = export_generator(
        model,
        examples,
        transcriber.vocabulary,
        transcriber.decoding,
        program="recordings",
        more={"kind": "recordings", "sound": settings},
    )
    filters = io.BytesIO()
    np.save(filters, mel_filters(sound.rate, points_of(length), sound.bins).numpy())

    def scored() -> tuple[Sequence[bytes], Score | None]:
        pairs = list(islice(_pairs(data), SCORED))
        if not pairs:
            return _noise(sound, SCORED), None
        references = [spelled(transcriber, text) for _, text in pairs]
        rate = rates(references)[0]
        return [one for one, _ in pairs], lambda answers: (rate.name, rate.score(answers, references).value)

    return form._replace(
        files={**form.files, FILTERS: filters.getvalue()},
        examples=lambda count: [one for one, _ in islice(_pairs(data), count)] or _noise(sound, count),
        scored=scored,
    )


def _frames(rows: int, length: int, bins: int) -> dict[str, Tensor]:
    draw = torch.Generator().manual_seed(rows)
    mask = ragged_mask(rows, length)
    return {"frames": torch.randn(rows, length, bins, generator=draw) * mask[..., None], "mask": mask}


def _pairs(data: SpeechData) -> Iterator[tuple[bytes, str]]:
    """Validation recordings and their transcripts; nothing where the data is missing."""
    with suppress(DataError, OSError):
        yield from ((Path(one.file).read_bytes(), one.text) for one in data.listed("valid"))


def _noise(sound: FrameSettings, count: int) -> list[bytes]:
    """Wav files of noise, up to three seconds long."""
    draw, found = np.random.default_rng(SEED), []
    for seconds in draw.uniform(0.2, 3, count):
        out = io.BytesIO()
        with wave.open(out, "wb") as file:
            file.setnchannels(1)
            file.setsampwidth(2)
            file.setframerate(sound.rate)
            file.writeframes(draw.normal(0, 3000, round(seconds * sound.rate)).astype("<i2").tobytes())
        found.append(out.getvalue())
    return found


EDGES = (2, 4, 8, 16)  # words or characters per recording


@dataclass(frozen=True, kw_only=True)
class SpeechEvaluation(WrittenEvaluation):
    """Transcripts and their scores: WER, CER, accuracy; CER first without spaces between words."""

    references: list[str]
    counts: list[int]  # substitutions, deletions, insertions, words or characters of the references
    hours: float  # of sound
    length: str = "words said"  # or characters
    shows: ClassVar[str] = "error rate by length"

    def details(self) -> list[str]:
        changed, out, put, known = self.counts
        unit = self.length.split()[0].removesuffix("s")
        minutes, speed = 60 * self.hours, 3600 * self.hours / max(self.seconds, 1e-9)
        return [
            f"  {plural(changed, unit)} substituted, {out:,} deleted, {put:,} inserted, of {known:,}",
            f"  {minutes:.1f} minutes of sound in {self.seconds:.1f} s, {speed:.0f} times as fast",
        ]

    def facts(self) -> dict[str, Any]:
        names = ("substitutions", "deletions", "insertions", self.length.split()[0])
        return {"counts": dict(zip(names, self.counts, strict=True)), **super().facts()}

    def figure(self, name: str) -> "Figure":
        """The error rate by length as bars with intervals; empty bins at the long end are left out."""
        from weft.figures.charts import quality_by_length

        rows = list(self.lengths)
        while rows[-1].score is None:
            rows.pop()
        return quality_by_length(rows, title=f"{name}: {self.title}", x=self.length)


def rates(references: Sequence[str]) -> tuple[ErrorRate, ErrorRate]:
    """The two error rates; CER comes first if the references have no spaces between words."""
    return (Wer(), Cer()) if spaced(references) else (Cer(), Wer())


def evaluate(
    transcriber: Transcriber, recordings: Sequence[Recording], *, title: str, answer: str
) -> SpeechEvaluation:
    """Transcribe and score."""
    given = (ParsedInput(Place(str(one.file)), one.frames) for one in recordings)
    answers, wrong, seconds = predicted(transcriber, given, TranscriptAnswer).checked()
    outputs = ["" if one is None else one.found[0].text for one in answers]
    references = [spelled(transcriber, one.text) for one in recordings]
    lowest = {f"most frequent answer ({answer!r})": [answer] * len(references)}
    first, second = rates(references)
    found = [scored(metric, outputs, references, baselines=lowest) for metric in (first, second, Accuracy())]
    counts = first.statistics(outputs, references).sum(0)
    frames = sum(len(one.frames) for one in recordings)
    return SpeechEvaluation(
        title=f"{title}, {plural(len(recordings), 'recording')}, {transcriber.decoding.describe()}"
        f"{unanswered(wrong, 'scored as empty')}",
        outputs=outputs,
        wrong=wrong,
        references=references,
        scores=found,
        lengths=by_length(first, outputs, references, references, edges=EDGES),
        length=f"{first.unit}s said",
        counts=[int(count) for count in counts],
        hours=frames * transcriber._sound.hop / 3600,
        seconds=seconds,
        compared=[of_lines(outputs, references, None, lowest)],
        forms=scores_in_form(
            {rate.name: rate for rate in (first, second)},
            outputs,
            references,
            form=transcriber.vocabulary.form,
        ),
    )
