"""CTranslate2, a fast C++ engine for Transformers on the CPU. Read next: ../ctranslate2_model.py."""

import json
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

import torch
from torch import Tensor

from weft.export.agreement import compare, sources
from weft.export.ctranslate2_model import check_parts, save
from weft.export.format import Format
from weft.export.network import TransformerNetwork, check_search, network
from weft.export.tokenizer import check_numbers, names, tokenizer_json
from weft.metrics.bleu import Bleu, Chrf
from weft.metrics.scored import of_lines
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
