"""A recording and its transcript: every hypothesis, and the frames that each letter attended to."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from weft.data.audio import read_spoken
from weft.errors import ConfigError, DataError
from weft.figures.records import Heard
from weft.search.trace import Trace
from weft.tasks.inspection import Examples, Inspection
from weft.tasks.seq2seq.inspection import decoded, plain_beam
from weft.tasks.speech.batch import RecordingBatch, collate_recordings, pad_frames
from weft.tasks.speech.predictor import Transcriber

if TYPE_CHECKING:
    from weft.tasks.speech.ready import SpeechPipeline


def inspected(
    pipeline: "SpeechPipeline", model: Any, text: str | None, examples: Examples, options: Mapping[str, Any]
) -> Inspection:
    """See Pipeline.inspected.

    The text is the name of a wav file; without one, a validation recording is used.
    """
    plain = pipeline.predictor(model)
    transcriber = Transcriber(plain.model, plain.vocabulary, plain.sound, plain_beam(plain.decoding))
    if text is None:
        path = next(iter(read_spoken(pipeline.task.data.path("valid")))).file
    elif not text.strip() or len(text) > 1000 or not Path(text).is_file():
        raise DataError(f"{text[:60]}: no such file; give a wav file")
    else:
        path = Path(text)
    return of(transcriber, transcriber.read(path), path.name)


def of(transcriber: Transcriber, frames: np.ndarray, name: str) -> Inspection:
    """The transcripts of a recording and their search.

    Args:
        transcriber: searches with a plain beam.
        frames: [S, F].
        name: of the recording.
    """
    device, encoder = transcriber.device, transcriber.model.encoder
    assert encoder is not None
    source, mask = pad_frames([frames])
    trace = Trace()
    found = transcriber.search(source.to(device), mask.to(device), trace, None)

    def batch_of(tokens: list[int]) -> RecordingBatch:
        return collate_recordings([frames], [tokens]).to(device)

    width = -(-len(frames) // encoder.stride)
    shown = decoded(transcriber.model, transcriber.vocabulary, found, trace, batch_of, width=width)
    hop = encoder.stride * transcriber.sound.hop
    try:
        heard = transcriber.align(frames, shown.tokens)
    except ConfigError:  # a model without attention: only the frames are shown
        nothing = np.zeros((0, width), np.float32)
        heard = Heard(frames.astype(np.float32), nothing, [], encoder.stride, transcriber.sound.hop)
    return Inspection(
        text=name,
        answer=shown.hypotheses[0].text,
        source=[f"{n * hop:.2f} s" for n in range(width)],
        target=shown.target,
        batch=shown.batch,
        hypotheses=shown.hypotheses,
        searched=shown.searched,
        choices=shown.choices,
        chosen_what="each character of the best transcript, given those before it",
        heard=heard,
    )
