"""The tokenizer of a language model alone, for programs that ask the model over HTTP: evaluation harnesses.

Any language model has one, also one that no other program can compute. The functions below make and check the
tokenizer.json of all formats. Read next: huggingface.py.
"""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

from tokenizers import Tokenizer

from weft.errors import ConfigError, ExportError
from weft.export.format import Format
from weft.export.network import sources
from weft.run import LoadedRun
from weft.tasks.abilities import ContinuesText
from weft.text.imported import ImportedVocabulary
from weft.text.pieces import SPECIALS
from weft.text.vocabulary import Vocabulary

TO = "tokenizer"


class TokenizerOnly(Format):
    """A directory with tokenizer.json and tokenizer_config.json, which AutoTokenizer loads."""

    about: ClassVar[str] = "only the tokenizer of a language model, for evaluation harnesses"

    def check(self, opened: LoadedRun, int8: bool | None) -> None:
        if not isinstance(opened.pipeline, ContinuesText):
            raise ConfigError(
                f"--to {TO}: expected a language model, got a run of the task {opened.name}; "
                "use --to onnx, which includes the tokenizer"
            )

    def write(self, opened: LoadedRun, folder: Path, int8: bool | None) -> Sequence[str]:
        pipeline: Any = opened.pipeline
        vocabulary: Vocabulary = pipeline.vocabulary
        if isinstance(vocabulary, ImportedVocabulary):
            content, about = vocabulary.content, _of(vocabulary)
            said = "tokenizer.json is that of the imported model"
        else:
            content = tokenizer_json(vocabulary, TO, begin="<eos>")
            about = settings(begins=True)
            count = check_numbers(vocabulary, content, sources(opened))
            said = f"tokenizer.json: {count} texts give Weft's tokens"
        (folder / "tokenizer.json").write_text(json.dumps(content, ensure_ascii=False), "utf-8")
        (folder / "tokenizer_config.json").write_text(json.dumps(about, indent=2))
        return [said]

    def hints(self, output: Path) -> Sequence[str]:
        return [f"next: weft serve RUN, and tokenizer={output} in the --model_args of lm_eval"]


def _of(vocabulary: ImportedVocabulary) -> dict[str, Any]:
    """The names of another program's symbols."""
    made, order = Tokenizer.from_str(json.dumps(vocabulary.content)), vocabulary.order
    names = {"pad_token": 0, "unk_token": 1, "bos_token": 2, "eos_token": 3}
    found = {name: made.id_to_token(order[number]) for name, number in names.items() if order[number] >= 0}
    return {"tokenizer_class": "PreTrainedTokenizerFast", "clean_up_tokenization_spaces": False, **found}


ODD = (
    "",
    " ",
    "  two   spaces ",
    "a\tb\nc\x1cd\x85e\u3000f",
    "<eos> inside <pad> a <unk> text <sos>",
    "<eos>",
    "e\u0301 \u00e9 ½ ﬁ ﾊﾟ İstanbul ΟΔΟΣ, ΑΣ Β Ο.ΔΟ\u0301Σ.",
    "日本語 ▁under_score 👩‍👩‍👧 €5,50",
    "x" * 60,
)
"""Texts on which programs often disagree."""


def tokenizer_json(
    vocabulary: Vocabulary,
    to: str,
    *,
    cut: int | None = None,
    begin: str | None = None,
    end: str | None = None,
) -> dict[str, Any]:
    """The content of tokenizer.json."""
    if vocabulary.kind not in ("word", "space", "character", "bpe", "unigram"):
        raise ConfigError(
            f"data.vocabulary: --to {to} expects a vocabulary learnt by Weft, got one that was imported; "
            "use the files of the original checkpoint, or --to onnx"
        )
    content = vocabulary.as_json()
    if cut is not None:
        content["truncation"] = {
            "direction": "Right",
            "max_length": cut,
            "strategy": "LongestFirst",
            "stride": 0,
        }
    if begin is not None or end is not None:
        content["post_processor"] = _template(begin, end)
    return content


def _template(begin: str | None, end: str | None) -> dict[str, Any]:
    """A post-processor that puts symbols around a text."""
    first, last = (
        [] if one is None else [{"SpecialToken": {"id": one, "type_id": 0}}] for one in (begin, end)
    )
    text, other = ({"Sequence": {"id": name, "type_id": 0}} for name in "AB")
    return {
        "type": "TemplateProcessing",
        "single": [*first, text, *last],
        "pair": [*first, text, *last, other, *last],
        "special_tokens": {
            one: {"id": one, "ids": [SPECIALS.index(one)], "tokens": [one]} for one in (begin, end) if one
        },
    }


def check_numbers(vocabulary: Vocabulary, content: dict[str, Any], texts: list[str]) -> int:
    """Check that a tokenizer.json gives Weft's numbers for these texts and for ODD; returns how many."""
    made = Tokenizer.from_str(json.dumps(content | {"post_processor": None, "truncation": None}))
    every = [*texts, *ODD]
    for text, ours in zip(every, vocabulary.encode_batch(every), strict=True):
        theirs = made.encode(text, add_special_tokens=False).ids
        if theirs != ours:
            raise ExportError(
                f"tokenizer.json gives {theirs[:8]} for {text[:40]!r}, expected Weft's {ours[:8]}; "
                "please report this text"
            )
    return len(every)


def settings(*, begins: bool) -> dict[str, Any]:
    """The content of tokenizer_config.json."""
    return {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "pad_token": "<pad>",
        "unk_token": "<unk>",
        "bos_token": "<eos>" if begins else "<sos>",
        "eos_token": "<eos>",
        "split_special_tokens": True,
        "clean_up_tokenization_spaces": False,
        "padding_side": "left" if begins else "right",
        "model_input_names": ["input_ids", "attention_mask"],
    }


def names(vocabulary: Vocabulary, to: str) -> list[str]:
    """The pieces by number, as tokenizer.json has them."""
    made = Tokenizer.from_str(json.dumps(tokenizer_json(vocabulary, to)))
    found = [made.id_to_token(number) for number in range(len(vocabulary))]
    return [piece for piece in found if piece is not None]
