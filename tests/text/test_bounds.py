"""An untrusted tokenizer.json uses bounded time and memory, and no panic of the library gets through."""

import base64
import json
import time
from pathlib import Path
from typing import Any

import pytest

from tests.slow import leading, slow
from tests.text.forged import forged, replace, split
from weft.errors import CheckpointError, DataError
from weft.text import bounds
from weft.text.imported import KEY, ImportedVocabulary, renumbered
from weft.text.loading import load_vocabulary

PUBLISHED = {
    "gpt2": r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+",
    "llama3": r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*"
    r"|\s*[\r\n]+|\s+(?!\S)|\s+",
    "o200k": r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve"
    r"|'m|'ll|'d)?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve"
    r"|'m|'ll|'d)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+",
    "clip": r"<\|startoftext\|>|<\|endoftext\|>|'s|'t|'re|'ve|'m|'ll|'d|[\p{L}]+|[\p{N}]|[^\s\p{L}\p{N}]+",
    "deepseek": r"[!\"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+"
    r"| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
    "spaces": r" {2,}",
}


def sequence(*steps: dict[str, Any]) -> dict[str, Any]:
    return {"type": "Sequence", "normalizers": list(steps)}


def template(times: int) -> dict[str, Any]:
    text, other = ({"Sequence": {"id": one, "type_id": 0}} for one in "AB")
    return {
        "type": "TemplateProcessing",
        "single": [text] * times,
        "pair": [text, other],
        "special_tokens": {},
    }


def table(*, written: int) -> str:
    """A precompiled table whose only rule writes `written` bytes."""
    return base64.b64encode(b"\4\0\0\0" + b"\0\0\0\0" + b"y" * written + b"\0").decode()


def kept(content: dict[str, Any], folder: Path) -> Path:
    order = [1, 3, 0, 2, 4, 5, 6]
    path = folder / "tokenizer.json"
    path.write_text(json.dumps({**content, KEY: {"order": order, "framed": False}}), "utf-8")
    return path


@pytest.mark.parametrize("name", leading(PUBLISHED, 2))
def test_published_patterns_are_read(name: str, tmp_path: Path) -> None:
    pattern = PUBLISHED[name]
    steps = sequence({"type": "NFKC"}, {"type": "Lowercase"}, replace(r"\s+", " ", "Regex"))
    content = forged(pre_tokenizer=split(pattern), normalizer=steps, post_processor=template(1))
    assert load_vocabulary(kept(content, tmp_path)).encode("A") == [4]


CATASTROPHIC = [
    r"(a+)+$",
    r"(?:a|aa)+$",
    r"(\w+\s?)+;",
    r"((?:ab)+)+c",
    r"(?:qzw+)*(?:qzw+)*(?:qzw*)+v",
    r"\s*\s*\s*\s*;",
]


@pytest.mark.parametrize(
    ("pattern", "place"),
    [
        (CATASTROPHIC[0], "pre_tokenizer"),
        (CATASTROPHIC[0], "decoder"),
        *slow([*((one, "pre_tokenizer") for one in CATASTROPHIC[1:]), (CATASTROPHIC[0], "normalizer")]),
    ],
)
def test_patterns_that_explode_are_refused_when_a_tokenizer_is_read(
    pattern: str, place: str, tmp_path: Path
) -> None:
    part = split(pattern) if place == "pre_tokenizer" else replace(pattern, "x", "Regex")
    begun = time.thread_time()
    with pytest.raises(CheckpointError, match=r"tokenizer.json: cannot be used .*takes too long"):
        load_vocabulary(kept(forged(**{place: part}), tmp_path))
    assert time.thread_time() - begun < 5
    (tmp_path / "there.json").write_text(json.dumps(forged(**{place: part})), "utf-8")
    with pytest.raises(CheckpointError, match=r"there.json: cannot be used"):
        renumbered(tmp_path / "there.json", 7, pad=1, start=0, end=2)


HUGE = "y" * 1_000_000
REFUSED = {
    "doubling decoder": forged(decoder={"type": "Sequence", "decoders": [replace("a", "aa")] * 30}),
    "doubling added token": forged(
        normalizer=sequence(*[replace("a", "aa")] * 40),
        added_tokens=[
            {
                "id": 6,
                "content": "a",
                "single_word": False,
                "lstrip": False,
                "rstrip": False,
                "normalized": True,
                "special": False,
            }
        ],
    ),
    "text a thousand times": forged(post_processor=template(1000)),
    "text a thousand times, inside": forged(post_processor={"type": "Sequence", "processors": [template(9)]}),
    "long suffix": forged(model={"type": "BPE", "vocab": {}, "merges": [], "end_of_word_suffix": HUGE}),
    "long words": forged(
        model={
            "type": "WordPiece",
            "vocab": {"a": 0},
            "unk_token": "a",
            "continuing_subword_prefix": "",
            "max_input_chars_per_word": 10**9,
        }
    ),
    "rule of a table": forged(normalizer={"type": "Precompiled", "precompiled_charsmap": table(written=999)}),
    "many patterns": forged(
        pre_tokenizer={"type": "Sequence", "pretokenizers": [split(f"a{n}") for n in range(99)]}
    ),
    "no model": {"added_tokens": []},
    "a list": forged(normalizer={"type": "Sequence", "normalizers": 7}),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_could_grow_without_end_is_refused(name: str, tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match=r"tokenizer.json: cannot be used"):
        load_vocabulary(kept(REFUSED[name], tmp_path))


def test_a_table_that_makes_the_library_panic_is_refused(tmp_path: Path) -> None:
    empty = {"type": "Precompiled", "precompiled_charsmap": base64.b64encode(bytes(5)).decode()}
    with pytest.raises(CheckpointError, match=r"cannot be used .*index out of bounds"):
        load_vocabulary(kept(forged(normalizer=empty), tmp_path))


BLOWING = {
    "doubled forty times": sequence(*[replace("a", "aa")] * 40),
    "one step of 10^11 letters": replace("a", HUGE),
    "a pattern": replace("[ab]", HUGE, "Regex"),
    "between all letters": replace("", HUGE),
    "before": {"type": "Prepend", "prepend": HUGE},
    "nested": sequence({"type": "NFC"}, sequence(replace("a", "bbbbbbb"), replace("b", "a" * 700))),
}


@pytest.mark.parametrize("name", BLOWING)
def test_a_text_that_becomes_far_longer_is_refused_without_being_written(name: str, tmp_path: Path) -> None:
    begun = time.thread_time()
    with pytest.raises((CheckpointError, DataError), match=r"normaliser turns .* characters into more than"):
        load_vocabulary(kept(forged(normalizer=BLOWING[name]), tmp_path)).encode("ab" * 200)
    assert time.thread_time() - begun < 1


def test_a_text_that_stays_short_enough_is_encoded_whatever_the_worst_case_is(tmp_path: Path) -> None:
    steps = sequence(replace("x", "y" * 500), replace("y", "z" * 500), {"type": "Lowercase"})
    words = load_vocabulary(kept(forged(normalizer=steps, pre_tokenizer=split(".")), tmp_path))
    assert words.encode("Ab" * 4000) == [4, 5] * 4000


def test_a_panic_while_a_text_is_encoded_is_an_error_of_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    # a slow pattern that no check detects
    monkeypatch.setattr(bounds, "check_tokenizer_json", lambda content: None)
    words = ImportedVocabulary(forged(pre_tokenizer=split(r"(a+)+$")), [1, 3, 0, 2, 4, 5, 6], framed=False)
    with pytest.raises(DataError, match=r"the tokenizer failed .*retry-limit"):
        words.encode("a" * 99 + "b")
