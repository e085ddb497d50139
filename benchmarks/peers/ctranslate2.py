"""CTranslate2: decodes the very weights that the transformers engine trained, in float32 or int8.

It does not train and takes no RNN. Its own converter does the conversion; only the vocabulary is ours,
and the decoder starts on the embedding of <s>, as our MarianMTModel does, not on zeros.
"""

import tempfile
from pathlib import Path
from typing import Any

import ctranslate2
import numpy as np
import torch
from ctranslate2.converters.converter import Converter
from ctranslate2.converters.transformers import BartLoader

from peers.engine import SPECIAL, TRAINED, Engine, Sizes, token_name, until_eos


class CTranslate2(Engine):
    """ctranslate2.Translator."""

    trains = False

    def __init__(self, sizes: Sizes, dtype: str) -> None:
        if sizes.model != "transformer" or dtype not in ("float32", "int8"):
            raise ValueError(f"ctranslate2: no {sizes.model} in {dtype}; Transformer in float32 or int8")
        self.dtype = dtype
        self.translator: ctranslate2.Translator | None = None

    def load(self, folder: Path) -> None:
        from transformers import MarianMTModel

        model = MarianMTModel.from_pretrained(folder / TRAINED)
        with tempfile.TemporaryDirectory() as scratch:
            converted = Path(scratch) / "model"
            _FromMemory(model).convert(str(converted), quantization=self.dtype)
            self.open(converted)

    def open(self, converted: Path) -> None:
        """Take a model as CTranslate2 writes it."""
        self.translator = ctranslate2.Translator(
            str(converted),
            device="cpu",
            compute_type=self.dtype,
            inter_threads=1,
            intra_threads=torch.get_num_threads(),
        )

    def search(
        self, source: np.ndarray, lengths: np.ndarray, width: int, shortest: int, longest: int
    ) -> list[list[int]]:
        rows = [
            [token_name(i) for i in row[:length]]
            for row, length in zip(source.tolist(), lengths, strict=True)
        ]
        found = self.translator.translate_batch(
            rows,
            beam_size=width,
            length_penalty=1.0,
            min_decoding_length=shortest,
            max_decoding_length=longest,
        )
        return [until_eos([_number(token) for token in result.hypotheses[0]]) for result in found]


class _FromMemory(Converter):
    def __init__(self, model: torch.nn.Module) -> None:
        self.model = model.eval()

    def _load(self):
        config = self.model.config
        config.normalize_before = config.normalize_embedding = False  # what MarianMTLoader sets as well
        with torch.no_grad():
            spec = BartLoader().get_model_spec(self.model)
        name_tokens(spec, config.vocab_size)
        return spec


def name_tokens(spec: Any, count: int) -> None:
    """Give a description of a model our numbers as its tokens."""
    tokens = [token_name(number) for number in range(count)]
    spec.register_source_vocabulary(tokens)
    spec.register_target_vocabulary(tokens)
    spec.config.bos_token, spec.config.eos_token, spec.config.unk_token = "<s>", "</s>", "<unk>"
    spec.config.decoder_start_token = "<s>"
    spec.config.add_source_bos = spec.config.add_source_eos = False


NUMBERS = {name: number for number, name in SPECIAL.items()}


def _number(name: str) -> int:
    return NUMBERS[name] if name in NUMBERS else int(name)
