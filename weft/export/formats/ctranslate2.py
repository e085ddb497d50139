"""CTranslate2, a fast C++ engine for Transformers on the CPU: its model.bin is written from our weights."""

import json
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor, nn

from weft.errors import ConfigError
from weft.export.format import Format
from weft.export.formats.tokenizer import check_numbers, names, tokenizer_json
from weft.export.network import (
    Side,
    TransformerNetwork,
    blocks,
    check_search,
    compare,
    network,
    positions,
    sources,
    usual_heads,
)
from weft.metrics.bleu import Bleu, Chrf
from weft.metrics.scored import of_lines
from weft.nn.norms import RMSNorm
from weft.nn.positions import Learned, sinusoid
from weft.nn.transformer import GATED
from weft.run import LoadedRun
from weft.search.offered import Decoding, SearchSettings
from weft.tasks.seq2seq.base import PairPipeline
from weft.text.vocabulary import EOS, PAD, SOS, UNK


class CTranslate2(Format):
    """A directory for ctranslate2.Translator or ctranslate2.Generator, with tokenizer.json."""

    about: ClassVar[str] = "CTranslate2: Transformer translators and language models, fast on CPUs"
    packages: ClassVar[Sequence[str]] = ("ctranslate2",)

    def check(self, opened: LoadedRun, int8: bool | None) -> None:
        found = network(opened, "ctranslate2")
        check_search(opened, "ctranslate2")
        check_parts(found)
        for vocabulary in (found.source, found.target):
            tokenizer_json(vocabulary, "ctranslate2")

    def write(self, opened: LoadedRun, folder: Path, int8: bool | None) -> Sequence[str]:
        found, texts = network(opened, "ctranslate2"), sources(opened)
        sides = {"tokenizer.json": found.target}
        if found.source is not found.target:
            sides = {"tokenizer.source.json": found.source, "tokenizer.target.json": found.target}
        count = 0
        for name, vocabulary in sides.items():
            cut = found.cut if vocabulary is found.source else None
            content = tokenizer_json(vocabulary, "ctranslate2", cut=cut)
            count += check_numbers(vocabulary, content, texts)
            (folder / name).write_text(json.dumps(content, ensure_ascii=False), "utf-8")
        pieces = (names(found.source, "ctranslate2"), names(found.target, "ctranslate2"))
        lines = write_model(opened, found, folder, pieces, texts, int8=bool(int8))
        (folder / "README.md").write_text(_readme(opened, found, list(sides)) + measured(lines), "utf-8")
        return [
            f"tokenizer.json: {count} texts give Weft's tokens",
            *lines,
            *check_search(opened, "ctranslate2"),
        ]


class Engine:
    """The exported model, run by CTranslate2 on one thread."""

    def __init__(
        self, network: TransformerNetwork, folder: Path, source: list[str], target: list[str]
    ) -> None:
        import ctranslate2

        made: Any = ctranslate2.Translator if network.encoder is not None else ctranslate2.Generator
        self._network = network
        self._source, self._target = source, target
        self._numbers = {piece: number for number, piece in enumerate(target)}
        self._engine = made(str(folder), device="cpu", intra_threads=1, compute_type="default")
        self.seconds = 0.0  # CPU time of searches
        self._banned = [[target[number]] for number in (PAD, UNK, SOS)]

    def search(self, row: Sequence[int], how: SearchSettings, limit: int) -> list[int]:
        """See ExportedModel."""
        asked = options(how) | {"suppress_sequences": self._banned}
        least = asked.pop("min_length")
        tokens = [self._source[number] for number in row]
        begin = time.process_time()
        if self._network.encoder is not None:
            made = self._engine.translate_batch(
                [tokens], max_decoding_length=limit, min_decoding_length=least, **asked
            )
            pieces = made[0].hypotheses[0]
        else:
            made = self._engine.generate_batch(
                [[self._target[EOS], *tokens]],
                max_length=limit,
                min_length=least,
                include_prompt_in_result=False,
                **asked,
            )
            pieces = made[0].sequences[0]
        self.seconds += time.process_time() - begin
        return [self._numbers[piece] for piece in pieces if piece != self._target[EOS]]

    def logp(self, rows: Sequence[Sequence[int]], targets: Sequence[Sequence[int]]) -> list[Tensor]:
        """See ExportedModel."""
        sides = [
            [[names[number] for number in row] for row in side]
            for names, side in ((self._source, rows), (self._target, targets))
        ]
        if self._network.encoder is not None:
            scored = self._engine.score_batch(*sides)
            return [torch.tensor(one.log_probs) for one in scored]
        end = self._target[EOS]
        joined = [[end, *row, *target, end] for row, target in zip(*sides, strict=True)]
        scored = self._engine.score_batch(joined)
        counts = [len(target) + 1 for target in targets]
        return [torch.tensor(one.log_probs[-count:]) for one, count in zip(scored, counts, strict=True)]


def options(how: SearchSettings) -> dict[str, Any]:
    """The run's search as CTranslate2's options."""
    least = how.min_length if isinstance(how, Decoding) else 0
    found: dict[str, Any] = {"beam_size": how.width() if how.search == "beam" else 1, "min_length": least}
    if how.search == "beam":
        return found | {"length_penalty": how.length_penalty}
    if how.search == "greedy":
        return found
    drawn = {"sampling_topp": how.top_p, "sampling_temperature": how.temperature}
    return found | {"sampling_topk": how.top_k, **drawn}


def write_model(
    opened: LoadedRun,
    found: TransformerNetwork,
    folder: Path,
    pieces: tuple[list[str], list[str]],
    texts: Sequence[str],
    *,
    int8: bool,
) -> list[str]:
    """Write the model in float32 and compare it with Weft; with `int8`, replace it and compare the two."""
    size = save(found, folder, *pieces, quantization=None)
    whole = Engine(found, folder, *pieces)
    exact = compare(found, texts, whole)
    lines = [f"float32: model.bin {size / 1e6:.2f} MB", *exact.lines(found.how)]
    if int8:
        after = save(found, folder, *pieces, quantization="int8")
        small = Engine(found, folder, *pieces)
        outputs = compare(found, texts, small, exact=False).outputs
        score = _scored(opened, found, whole, small)
        ratio = small.seconds / whole.seconds
        lines.append(
            f"int8: model.bin {after / 1e6:.2f} MB, {after / size:.2f} of float32; "
            f"{ratio:.2f} of its CPU time"
        )
        lines += [_beside(found, exact.outputs, outputs), *score]
    return lines


def measured(lines: Sequence[str]) -> str:
    """Lines of a report as a section of a model card."""
    return "\n## Measured by the export\n\n" + "".join(f"- {line}\n" for line in lines)


def _beside(found: TransformerNetwork, exact: Sequence[list[int]], small: Sequence[list[int]]) -> str:
    """What 8 bits change, by the greedy outputs of float32."""
    ours, theirs = ([found.target.decode(row) for row in one] for one in (exact, small))
    bleu, chrf = (of_lines(theirs, ours).value(metric) for metric in (Bleu(), Chrf()))
    same = sum(pair[0] == pair[1] for pair in zip(ours, theirs, strict=True))
    return (
        f"int8: {same} of {len(ours)} greedy outputs equal those of float32; against them "
        f"BLEU {bleu:.1f}, chrF {chrf:.1f}"
    )


def _scored(opened: LoadedRun, found: TransformerNetwork, whole: Engine, small: Engine) -> list[str]:
    """The score of both on validation inputs, with the recipe's search; none for a language model."""
    if not isinstance(opened.pipeline, PairPipeline):
        return []
    inputs, score = opened.pipeline.scored_examples()
    if score is None:
        return []
    answers: dict[Engine, list[str]] = {whole: [], small: []}
    for row in found.encode(inputs):
        row = row[: found.length // 2]
        limit = min(2 * len(row) + 10, found.length - 1 - len(row))
        for engine, written in answers.items():
            written.append(found.target.decode(engine.search(row, found.how, limit) if row else []))
    (name, first), (_, second) = score(answers[whole]), score(answers[small])
    return [f"int8: {name} of {len(inputs)} validation inputs {second:.2f}, in float32 {first:.2f}"]


def _typed(found: TransformerNetwork) -> str:
    """The options of the run's search as one types them, a line each."""
    least = "min_length" if found.encoder is None else "min_decoding_length"
    asked = options(found.how)
    asked[least] = asked.pop("min_length")
    return "\n".join(f"    {name}={value}," for name, value in asked.items())


def _readme(opened: LoadedRun, found: TransformerNetwork, files: list[str]) -> str:
    """How to use the model."""
    limit = min(getattr(found.how, "max_tokens", 100), found.length // 2)
    ratio, more = getattr(found.how, "max_ratio", 2.0), getattr(found.how, "max_extra", 10)
    if found.encoder is None:
        return f"""# A language model for CTranslate2

Exported by Weft from the run `{opened.path.resolve().name}`.
Install `ctranslate2` and `tokenizers` with pip; then, in this folder:

```python
import ctranslate2
from tokenizers import Tokenizer

tokenizer = Tokenizer.from_file("tokenizer.json")
model = ctranslate2.Generator(".", device="cpu")
tokens = ["<eos>", *tokenizer.encode("The file").tokens]  # a line end before the text
found = model.generate_batch(
    [tokens],
    max_length={limit},
{_typed(found)}
    suppress_sequences=[["<pad>"], ["<unk>"], ["<sos>"]],
)
print(tokenizer.decode([n for n in found[0].sequences_ids[0] if n > 3]))
```
"""
    return f"""# A translator for CTranslate2

Exported by Weft from the run `{opened.path.resolve().name}`.
Install `ctranslate2` and `tokenizers` with pip; then, in this folder:

```python
import ctranslate2
from tokenizers import Tokenizer

source, target = Tokenizer.from_file("{files[0]}"), Tokenizer.from_file("{files[-1]}")
model = ctranslate2.Translator(".", device="cpu")
tokens = source.encode("A text to translate.").tokens
found = model.translate_batch(
    [tokens],
{_typed(found)}
    max_decoding_length={ratio:g} * len(tokens) + {more},
    suppress_sequences=[["<pad>"], ["<unk>"], ["<sos>"]],
)
print(target.decode([target.token_to_id(token) for token in found[0].hypotheses[0]]))
```

A text without any token (a blank one) is not translated.
"""


ACTIVATIONS = {
    "relu": "RELU",
    "gelu": "GELU",
    "gelu_tanh": "GELUTanh",
    "silu": "SWISH",
    "swiglu": "SWISH",
    "geglu": "GELUTanh",
}


def check_parts(network: TransformerNetwork) -> None:
    """Check that CTranslate2 has every part."""
    for name, part in network.sides:
        place, block = f"model.{name}", blocks(part)[0]
        kind = positions(part)
        if kind == "other":
            raise ConfigError(
                f"{place}.positions: --to ctranslate2 expects sinusoidal, learned, rotary or none, got "
                f"{_kind(part)}; use --to onnx"
            )
        if block.norm == "parallel" or not usual_heads(part):
            raise ConfigError(
                f"{place}: --to ctranslate2 expects blocks and heads as in Vaswani et al. 2017, got parallel "
                "blocks or a variant of heads; use --to onnx"
            )
        if kind == "rotary" and network.encoder is not None:
            raise ConfigError(
                f"{place}.positions: --to ctranslate2 has rotary positions in language models only; use "
                "sinusoidal or learned ones, or --to onnx"
            )
    _check_alike(network)


def _kind(part: Side) -> str:
    return type(part.positions if hasattr(part.positions, "project") else part.distance).__name__.lower()


def _check_alike(network: TransformerNetwork) -> None:
    """What CTranslate2 stores once for a model."""
    kinds = {(blocks(part)[0].norm, _epsilon(part)) for _, part in network.sides}
    if len(kinds) > 1:
        raise ConfigError(
            "model: --to ctranslate2 expects the same norm and norm_epsilon in encoder and decoder, got "
            f"{' and '.join(map(str, sorted(kinds)))}; use --to onnx"
        )


def _epsilon(part: Side) -> float:
    return float(blocks(part)[0].attention_norm.eps)


def save(
    network: TransformerNetwork,
    folder: Path,
    source: list[str],
    target: list[str],
    *,
    quantization: str | None,
) -> int:
    """Write model.bin, config.json and the vocabularies; returns the size of model.bin in bytes."""
    spec = _pair(network) if network.encoder is not None else _single(network)
    config = spec.config
    if network.encoder is not None:
        spec.register_source_vocabulary(list(source))
        spec.register_target_vocabulary(list(target))
        config.decoder_start_token = target[SOS]
        config.add_source_bos = config.add_source_eos = False
    else:
        spec.register_vocabulary(list(target))
    config.unk_token, config.eos_token = target[UNK], target[EOS]
    config.bos_token = target[SOS] if network.encoder is not None else target[EOS]
    config.layer_norm_epsilon = _epsilon(network.decoder)
    spec.validate()
    spec.optimize(quantization=quantization)
    spec.save(str(folder))
    return (folder / "model.bin").stat().st_size


def _settings(part: Side) -> dict[str, Any]:
    """The arguments of an encoder's or decoder's specification."""
    from ctranslate2.specs import common_spec

    block = blocks(part)[0]
    rotary: dict[str, Any] = {}
    if positions(part) == "rotary":
        distance: Any = part.distance
        rotary = {"rotary_dim": 0, "rotary_interleave": True, "rotary_base": float(distance.base)}
    return {
        "num_layers": len(blocks(part)),
        "num_heads": block.attention.num_heads,
        "pre_norm": block.norm == "before",
        "activation": getattr(common_spec.Activation, ACTIVATIONS[block.network.activation]),
        "rms_norm": isinstance(block.attention_norm, RMSNorm),
        "ffn_glu": block.network.activation in GATED,
        "layernorm_embedding": not isinstance(part.entry_norm, nn.Identity),
        **rotary,
    }


def _pair(network: TransformerNetwork) -> Any:
    from ctranslate2.specs import transformer_spec

    assert network.encoder is not None
    spec = transformer_spec.TransformerSpec(
        transformer_spec.TransformerEncoderSpec(**_settings(network.encoder)),
        transformer_spec.TransformerDecoderSpec(**_settings(network.decoder)),
    )
    _fill(spec.encoder, spec.encoder.embeddings[0], network.encoder, network.model.source_embed, network)
    _fill(spec.decoder, spec.decoder.embeddings, network.decoder, network.model.embed, network)
    _set_linear(spec.decoder.projection, network.model.head)
    return spec


def _single(network: TransformerNetwork) -> Any:
    from ctranslate2.specs import transformer_spec

    spec = transformer_spec.TransformerDecoderModelSpec.from_config(**_settings(network.decoder))
    _fill(spec.decoder, spec.decoder.embeddings, network.decoder, network.model.embed, network)
    _set_linear(spec.decoder.projection, network.model.head)
    return spec


def _fill(spec: Any, table: Any, part: Side, embed: Any, network: TransformerNetwork) -> None:
    """An encoder or a decoder."""
    table.weight = _numbers(embed.table.weight)
    spec.scale_embeddings = np.float32(embed.scale)
    if hasattr(spec, "position_encodings"):
        spec.position_encodings.encodings = _position_table(part, network)
    if not isinstance(part.last_norm, nn.Identity):
        _norm(spec.layer_norm, part.last_norm)
    if not isinstance(part.entry_norm, nn.Identity):
        _norm(spec.layernorm_embedding, part.entry_norm)
    for block, layer in zip(blocks(part), spec.layer, strict=True):
        _attention(layer.self_attention, block.attention, fused=True)
        _norm(layer.self_attention.layer_norm, block.attention_norm)
        if hasattr(block, "look"):
            _attention(layer.attention, block.look, fused=False)
            _norm(layer.attention.layer_norm, block.look_norm)
        first, network_of = block.network.first, layer.ffn
        if block.network.activation in GATED:
            half = first.out_features // 2
            _set_linear(network_of.linear_0, first, slice(None, half))
            _set_linear(network_of.linear_0_noact, first, slice(half, None))
        else:
            _set_linear(network_of.linear_0, first)
        _set_linear(network_of.linear_1, block.network.second)
        _norm(network_of.layer_norm, block.network_norm)


def _position_table(part: Side, network: TransformerNetwork) -> np.ndarray:
    table: Any = part.positions
    if isinstance(table, Learned):
        return _numbers(table.table.weight)
    if positions(part) == "none":
        return np.zeros((network.length, part.size), np.float32)
    waves = sinusoid(torch.arange(network.length), part.size, table.base, dtype=torch.float64)
    return _numbers(waves)


def _numbers(tensor: Tensor) -> np.ndarray:
    return tensor.detach().float().contiguous().numpy()


def _norm(spec: Any, norm: Any) -> None:
    spec.gamma = _numbers(norm.weight)
    if not isinstance(norm, RMSNorm):
        spec.beta = np.zeros_like(spec.gamma) if norm.bias is None else _numbers(norm.bias)


def _set_linear(spec: Any, layer: Any, rows: slice = slice(None)) -> None:
    spec.weight = _numbers(layer.weight[rows])
    if layer.bias is not None:
        spec.bias = _numbers(layer.bias[rows])


def _attention(spec: Any, attention: Any, *, fused: bool) -> None:
    """Queries, keys and values in one matrix for self-attention, in two otherwise."""
    from ctranslate2.converters.utils import fuse_linear
    from ctranslate2.specs import common_spec

    parts = [common_spec.LinearSpec() for _ in range(2)]
    _set_linear(parts[0], attention.query)
    _set_linear(parts[1], attention.key_value)
    if fused:
        fuse_linear(spec.linear[0], parts)
    else:
        spec.linear[0], spec.linear[1] = parts
    _set_linear(spec.linear[-1], attention.out)
