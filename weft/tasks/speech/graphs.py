"""A transcriber as graphs: `start` reads frames, `step` writes one character. Read next: ../exported.py."""

import io
import wave
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from weft.data.audio import read_spoken
from weft.errors import DataError
from weft.metrics.wer import Wer
from weft.nn.embed.audio import LEAST, mel_filters, points_of
from weft.tasks.exported import SCORED, ModelExport, Score
from weft.tasks.predictor import Json
from weft.tasks.seq2seq.graphs import written
from weft.tasks.speech.data import FrameSettings, SpeechData
from weft.tasks.speech.evaluation import spelled
from weft.tasks.speech.predictor import Transcriber

FILTERS = "filters.npy"
SEED = 1


def export_transcriber(transcriber: Transcriber, data: SpeechData) -> ModelExport:
    """What `weft export` writes for a transcriber; validation recordings are of `data`."""
    model, sound = transcriber.model, transcriber.sound
    assert model.encoder is not None
    stride = model.encoder.stride
    examples = _frames(3, 5 * stride - 1, sound.bins), _frames(2, 8 * stride, sound.bins)
    length = round(sound.window * sound.rate)
    settings: dict[str, Json] = {
        "rate": sound.rate,
        "window": length,
        "hop": round(sound.hop * sound.rate),
        "normalise": sound.normalise,
        "least": LEAST,
        "filters": FILTERS,
    }
    form = written(
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
        pairs = _pairs(data, SCORED)
        if not pairs:
            return _noise(sound, SCORED), None
        references = [spelled(transcriber, text) for _, text in pairs]
        return [one for one, _ in pairs], lambda answers: ("WER", Wer().score(answers, references).value)

    return form._replace(
        files={**form.files, FILTERS: filters.getvalue()},
        examples=lambda count: [one for one, _ in _pairs(data, count)] or _noise(sound, count),
        scored=scored,
    )


def _frames(rows: int, length: int, bins: int) -> dict[str, Tensor]:
    draw = torch.Generator().manual_seed(rows)
    mask = torch.arange(length) < torch.arange(length, length - rows, -1)[:, None]
    return {"frames": torch.randn(rows, length, bins, generator=draw) * mask[..., None], "mask": mask}


def _pairs(data: SpeechData, count: int) -> list[tuple[bytes, str]]:
    """Validation recordings and their transcripts; nothing where the data is missing."""
    found: list[tuple[bytes, str]] = []
    with suppress(DataError, OSError):
        for one in read_spoken(data.find("valid")):
            found.append((Path(one.file).read_bytes(), one.text))
            if len(found) == count:
                break
    return found


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
