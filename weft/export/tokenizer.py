"""A run's vocabulary as a tokenizer.json that gives the numbers Weft gives, whatever the text.

The file in a run is close to it. It differs where the `tokenizers` library does something else than Python:
text that looks like a special symbol, blank texts, control characters that count as white space, and the
Greek final sigma in lower case.
"""

import json
import tempfile
from pathlib import Path
from typing import Any

from tokenizers import Tokenizer

from weft.errors import ConfigError, ExportError
from weft.text.pieces import SPECIALS
from weft.text.vocabulary import Vocabulary

ODD = (
    "",
    " ",
    "  two   spaces ",
    "a\tb\nc\x1cd\x85e\u3000f",
    "<eos> inside <pad> a <unk> text <sos>",
    "<eos>",
    "e\u0301 \u00e9 ½ ﬁ ﾊﾟ İstanbul ΟΔΟΣ, ΑΣ Β",
    "日本語 ▁under_score 👩‍👩‍👧 €5,50",
    "x" * 60,
)
"""Texts on which programs often disagree."""


def tokenizer_json(
    vocabulary: Vocabulary,
    to: str,
    *,
    symbols: bool,
    cut: int | None = None,
    begin: str | None = None,
    end: str | None = None,
) -> dict[str, Any]:
    """The content of tokenizer.json.

    Args:
        vocabulary: of a run.
        to: name of the format, for errors.
        symbols: whether to declare the four special symbols, so that decoding can skip them; the program
            must then not look for them in texts.
        cut: tokens that are read of a text; None for all.
        begin, end: special symbols put before and after each text.

    Raises:
        ConfigError: the vocabulary is another program's (imported).
    """
    if vocabulary.kind not in ("word", "space", "character", "bpe", "unigram"):
        raise ConfigError(
            f"data.vocabulary: --to {to} expects a vocabulary learnt by Weft, got one that was imported; "
            "use the files of the original checkpoint, or --to onnx"
        )
    with tempfile.TemporaryDirectory() as folder:
        vocabulary.save(Path(folder) / "tokenizer.json")
        content: dict[str, Any] = json.loads((Path(folder) / "tokenizer.json").read_text("utf-8"))
    content["normalizer"]["normalizers"] = _normalizers(content["normalizer"]["normalizers"])
    ends = [{"type": "Fuse"}, _replace(r"^ +| +$", ""), _replace(" +", " ")]
    content["decoder"] = {"type": "Sequence", "decoders": ends}
    if not symbols:
        content["added_tokens"] = []
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
    """Check that a tokenizer.json gives Weft's numbers for these texts and for ODD; returns how many.

    Raises:
        ExportError: it does not.
    """
    made = Tokenizer.from_str(json.dumps(content | {"post_processor": None, "truncation": None}))
    made.encode_special_tokens = True
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
    """The content of tokenizer_config.json.

    Args:
        begins: whether <eos>, the end of a line, is read before a text, as a language model does.
    """
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


def _normalizers(steps: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The same steps with Python's idea of white space, letter case and blank texts."""
    found: list[dict[str, Any]] = []
    for step in steps:
        if step["type"] == "Lowercase":  # it knows no final sigma, and can leave the Unicode form
            found.append(_replace(r"(?<=\p{L})Σ(?!\p{M}*\p{L})", "ς"))
            found += [step, *found[:1]] if found[0]["type"] in ("NFC", "NFKC") else [step]
        elif step["type"] == "Replace":
            found.append(_replace(r"[\s\x1c-\x1f]+", " "))
        else:
            found.append(step)
    return [*found, _replace(r"^ +$", "")]  # a blank text has no token


def _replace(pattern: str, content: str) -> dict[str, Any]:
    return {"type": "Replace", "pattern": {"Regex": pattern}, "content": content}


def names(vocabulary: Vocabulary, to: str) -> list[str]:
    """The pieces by number, as tokenizer.json has them."""
    made = Tokenizer.from_str(json.dumps(tokenizer_json(vocabulary, to, symbols=False)))
    found = [made.id_to_token(number) for number in range(len(vocabulary))]
    return [piece for piece in found if piece is not None]
