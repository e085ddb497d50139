"""A trained model at work: recordings in, text out, and where it listened.

Read next: ../shared/writing/searching.py.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch

from weft.data.audio import Sound, read_wav
from weft.errors import ConfigError
from weft.models import Generator
from weft.probe import probe
from weft.search.hypotheses import to_lists
from weft.tasks.shared.writing.decoding import Decoding
from weft.tasks.shared.writing.searching import Searching
from weft.tasks.shared.writing.translator import Translation
from weft.tasks.speech.batch import collate_recordings, pad_frames
from weft.tasks.speech.data import FrameSettings
from weft.text.vocabulary import EOS, PAD, SOS, UNK, Vocabulary

WINDOW = 256  # recordings that are sorted by length together


@dataclass(frozen=True, kw_only=True)
class Listening(Decoding):
    """How a transcript is searched; `Decoding` with a limit that suits frames.

    Args:
        max_ratio: at most max_ratio * frames + max_extra tokens are written.
    """

    max_ratio: float = 0.25


class Heard(NamedTuple):
    """Where a transcript listened."""

    frames: np.ndarray  # [S, F]
    weights: np.ndarray  # [T, S'] attention for each token, S' = ceil(S / stride)
    pieces: list[str]  # of the tokens, the end too
    stride: int  # frames that a column of the weights stands for
    hop: float  # seconds from frame to frame


class Transcriber:
    """Searches transcripts.

    Args:
        model: in evaluation mode, on its device.
        vocabulary: what is written.
        sound: how frames are made.
        decoding: how to search.
        others: models that search along, as an ensemble.
    """

    def __init__(
        self,
        model: Generator,
        vocabulary: Vocabulary,
        sound: FrameSettings,
        decoding: Decoding,
        *,
        others: Sequence[Generator] = (),
    ) -> None:
        self.model = model
        self.vocabulary = vocabulary
        self.sound = sound
        self.decoding = decoding
        self._searching = Searching([model, *others], vocabulary, decoding, (PAD, UNK, SOS))

    def predict(self, recording: str | Path | Sound) -> str:
        """What is said in one recording: a wav file, or samples and their rate."""
        sound = recording if isinstance(recording, Sound) else read_wav(recording)
        return next(self.transcribe([self.sound.of(sound)]))[0].text

    def transcribe(self, recordings: Iterable[np.ndarray]) -> Iterator[list[Translation]]:
        """For the frames [S, F] of each recording its n best transcripts, in order."""
        recordings = iter(recordings)
        chance = torch.Generator(self._device).manual_seed(self.decoding.seed)
        while window := list(islice(recordings, WINDOW)):
            results: list[list[Translation]] = [[] for _ in window]
            order = sorted(range(len(window)), key=lambda n: -len(window[n]))
            for at in range(0, len(order), self.decoding.batch_rows):
                numbers = order[at : at + self.decoding.batch_rows]
                frames, mask = pad_frames([window[n] for n in numbers])
                found = self._searching(frames.to(self._device), mask.to(self._device), None, chance)
                for row, texts in enumerate(to_lists(found, EOS)):
                    results[numbers[row]] = [
                        Translation(
                            self.vocabulary.decode(tokens),
                            float(found.score[row, k]),
                            float(found.logp[row, k]),
                            tokens,
                        )
                        for k, tokens in enumerate(texts)
                    ]
            yield from results

    def align(self, frames: np.ndarray, tokens: Sequence[int]) -> Heard:
        """Where the model listened while it wrote these tokens.

        Raises:
            ConfigError: it has no attention.
        """
        batch = collate_recordings([frames], [list(tokens)]).to(self._device)
        with torch.no_grad(), probe() as seen:
            self.model.features(batch)
        encoder = self.model.encoder
        assert encoder is not None
        width = -(-len(frames) // encoder.stride)
        if seen["attention"]:
            weights = torch.cat([part for part in seen["attention"] if part.shape[2] == width], 1)
        elif seen["cross_attention"]:
            layers = seen["cross_attention"]
            weights = layers[max(0, len(layers) - 2)].mean(
                1
            )  # Garg et al. 2019: the last but one aligns best
        else:
            raise ConfigError("this model has no attention, so it has no alignment to show; leave out --plot")
        return Heard(
            frames.astype(np.float32),
            weights[0, : len(tokens) + 1].float().cpu().numpy(),
            self.vocabulary.pieces([*tokens, EOS]),
            encoder.stride,
            self.sound.hop,
        )

    @property
    def _device(self) -> torch.device:
        return next(self.model.parameters()).device
