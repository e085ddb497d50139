"""Symbols around the texts of a translator: languages of mBART, M2M100 and NLLB, a forced first token.

Read next: vocabularies.py; ../text/imported.py.
"""

from typing import Any, NamedTuple

from weft.errors import ConfigError
from weft.importing.checkpoint import Checkpoint
from weft.text.foreign import after_prefix, content_of

LANGUAGES = ("mbart", "m2m_100")
"""Families whose texts have a symbol of their language."""


class Frame(NamedTuple):
    """Original numbers of the symbols around the texts."""

    source: tuple[list[int], list[int]] | None  # before and after; None for the tokenizer's own
    target: list[int]  # before; the end is added by the task
    start: int | None  # the decoder's first input; None for the one in config.json
    prefix: str = ""  # the text that the source is read after, such as "summarize:"


def frame(foreign: Checkpoint, source: str, target: str, end: int) -> Frame:
    """The symbols for one pair of languages."""
    family = foreign.setting("model_type")
    if family not in LANGUAGES:
        forced = foreign.config.get("forced_bos_token_id")
        if forced is not None and type(forced) is not int:
            raise ConfigError(
                f"{foreign.path}: forced_bos_token_id: expected the number of a token, got {str(forced)[:40]}"
            )
        written = [] if forced is None else [foreign.setting("forced_bos_token_id")]
        prefix = foreign.config.get("prefix") or ""
        around = after_prefix(foreign.path / "tokenizer.json", prefix) if prefix.strip() else None
        return Frame(around, written, None, prefix.strip() if around else "")
    content = content_of(foreign.path / "tokenizer.json")
    here, there = (_language(foreign, content, *pair) for pair in (("source", source), ("target", target)))
    if not _symbol_is_last(content):
        return Frame(([here], [end]), [there], end)
    if family == "mbart":  # the older form: the symbol itself is the decoder's first input
        return Frame(([], [end, here]), [], there)
    return Frame(([], [end, here]), [there], end)


def framed(content: dict[str, Any], before: list[int], after: list[int]) -> dict[str, Any]:
    """The content of a tokenizer.json that puts these symbols before and after a text."""
    names = {number: f"weft{number}" for number in (*before, *after)}
    pieces: list[dict[str, Any]] = [
        *({"SpecialToken": {"id": names[number], "type_id": 0}} for number in before),
        {"Sequence": {"id": "A", "type_id": 0}},
        *({"SpecialToken": {"id": names[number], "type_id": 0}} for number in after),
    ]
    symbols = {name: {"id": name, "ids": [number], "tokens": [name]} for number, name in names.items()}
    pair = [*pieces, {"Sequence": {"id": "B", "type_id": 1}}]
    processor = {"type": "TemplateProcessing", "single": pieces, "pair": pair, "special_tokens": symbols}
    return content | {"post_processor": processor}


def _language(foreign: Checkpoint, content: dict[str, Any], side: str, name: str) -> int:
    """The number of a language's symbol."""
    added = content.get("added_tokens") or []
    symbols = {str(one["content"]): int(one["id"]) for one in added if one.get("special")}
    found = [symbol for symbol in (name, f"__{name}__") if symbol in symbols]
    found = found or [symbol for symbol in symbols if symbol.startswith(f"{name}_")]
    if len(found) != 1:
        known = [symbol for symbol in symbols if "_" in symbol]
        said = f"one of {', '.join(found)}" if found else f"a language such as {', '.join(known[:5])}"
        raise ConfigError(
            f"{foreign.path / 'tokenizer.json'}: --{side}: expected {said}, got {name!r}; "
            "name it as the tokenizer does"
        )
    return symbols[found[0]]


def _symbol_is_last(content: dict[str, Any]) -> bool:
    """Whether a source ends with the symbol of its language; otherwise it begins with it."""
    single = (content.get("post_processor") or {}).get("single") or []
    return bool(single) and "Sequence" in single[0]
