"""Write views as one self-contained HTML file, with style, renderers and numbers inside.

A content security policy forbids all requests. Matrices are packed as bytes (base64), with 16 bits per number
if they fit, else 8, so that the file stays below LARGEST. Read next: base.js; ../views/view.py.
"""

import base64
import html
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from weft.errors import ShapeError
from weft.figures.colours import BARS, DARK_BARS, DARK_SIGNED, DARK_WEIGHTS, SIGNED, WEIGHTS, scale
from weft.inspect.views.view import Block, View, plain
from weft.wording import plural

HERE = Path(__file__).parent
SCRIPTS = (
    "base.js",
    "matrices.js",
    "lines.js",
    "tree.js",
    "choices.js",
    "points.js",
    "plane.js",
    "picture.js",
    "start.js",
)
LARGEST = 2_900_000  # maximum size of a page in bytes
FINE, ROUGH = 700_000, 1_900_000
"""Maximum count of numbers in all matrices with 16 bits, and with 8 bits; beyond, items are omitted."""

LONG = 300  # texts above this number of characters are shown smaller
STEPS = 65  # number of colours of a scale; the page interpolates between them
POLICY = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data: blob:"


class PageHead(NamedTuple):
    """The part of the page above the views."""

    title: str
    facts: Sequence[tuple[str, str]]  # name and value
    text: str = ""
    answer: str = ""


def page(head: PageHead, views: Sequence[View]) -> str:
    """The page as HTML."""
    return document(head, [(view.title, view.page()) for view in views])


def document(head: PageHead, sections: Sequence[tuple[str, Sequence[Block]]]) -> str:
    """A page from titles and blocks."""
    matrices = [block for _, blocks in sections for block in blocks if block["kind"] == "matrices"]
    left_out = _fit(matrices)
    count = sum(
        item["values"].size for block in matrices for group in block["groups"] for item in group["items"]
    )
    bits = 16 if count <= FINE else 8
    data = [
        {"title": title, "blocks": [_packed(block, bits) for block in blocks]} for title, blocks in sections
    ]
    facts = "".join(
        f"<div><dt>{html.escape(name)}</dt><dd>{html.escape(value)}</dd></div>" for name, value in head.facts
    )
    if left_out:
        said = f"{plural(left_out, 'heat map')}, to keep the page small; use --views to get all"
        facts += f"<div><dt>omitted</dt><dd>{said}</dd></div>"
    text = "".join(
        f'<p class="{kind}{" long" if len(said) > LONG else ""}" dir="auto">{html.escape(said)}</p>'
        for kind, said in (("text", head.text), ("answer", head.answer))
        if said
    )
    script = palette() + "\n".join((HERE / name).read_text("utf-8") for name in SCRIPTS)
    whole = (HERE / "page.html").read_text("utf-8")
    for name, value in {
        "POLICY": POLICY,
        "TITLE": html.escape(head.title),
        "STYLE": style() + (HERE / "style.css").read_text("utf-8"),
        "FACTS": facts,
        "TEXT": text,
        "SCRIPT": script,
        "DATA": _json(data),
    }.items():
        whole = whole.replace(f"<!--{name}-->", value)
    size = len(whole.encode("utf-8", "replace"))
    if size > LARGEST:
        raise ShapeError(
            f"the page: expected at most {LARGEST:,} bytes, got {size:,}; give a shorter text, or show "
            "fewer views with --only"
        )
    return whole


def style() -> str:
    """The colours of lines as CSS variables, --c0 and so on."""
    light, dark = (
        ":root{" + "".join(f"--c{n}:{colour};" for n, colour in enumerate(colours)) + "}"
        for colours in (BARS, DARK_BARS)
    )
    return f"{light}\n@media (prefers-color-scheme:dark){{{dark}}}\n"


def palette() -> str:
    """The colour scales of figures for the scripts of the page, in sRGB from 0 to 255."""
    found = {
        name: {kind: (255 * scale(anchors, STEPS)).round().astype(int).tolist() for kind, anchors in kinds}
        for name, kinds in (
            ("light", (("one", WEIGHTS), ("two", SIGNED))),
            ("dark", (("one", DARK_WEIGHTS), ("two", DARK_SIGNED))),
        )
    }
    return f"const palette = {json.dumps(found, separators=(',', ':'))};\n"


def _fit(blocks: Sequence[Block]) -> int:
    """Remove the last items of groups until all numbers fit; returns how many."""
    gone = 0
    for block in blocks:
        for group in block["groups"]:
            group["items"] = list(group["items"])
    while True:
        groups = [group for block in blocks for group in block["groups"]]
        total = sum(item["values"].size for group in groups for item in group["items"])
        most = max(groups, key=lambda group: len(group["items"]), default=None)
        if total <= ROUGH or most is None or len(most["items"]) <= 1:
            return gone
        most["items"].pop()
        gone += 1


def _packed(block: Block, bits: int) -> Any:
    if block["kind"] == "picture":
        items = [{**item, "values": pack(item["values"], 8)} for item in block["items"]]
        return plain({**block, "items": items})
    if block["kind"] != "matrices":
        return plain(_rounded(block))
    groups = [
        {**group, "items": [{**item, "values": pack(item["values"], bits)} for item in group["items"]]}
        for group in block["groups"]
    ]
    return plain({**block, "groups": groups})


def pack(values: np.ndarray, bits: int) -> dict[str, Any]:
    """Pack a matrix as bytes: integers from 0 at its minimum to 2^bits - 1 at its maximum."""
    low, high = float(values.min(initial=0.0)), float(values.max(initial=0.0))
    wide = max(high - low, 1e-12)
    whole = np.rint((values.astype(np.float64) - low) / wide * (2**bits - 1))
    data = whole.astype("<u2" if bits == 16 else "u1").tobytes()
    return {
        "shape": list(values.shape),
        "low": low,
        "high": high,
        "bits": bits,
        "data": base64.b64encode(data).decode(),
    }


def _rounded(value: Any) -> Any:
    """Round to six digits; integers, such as the seconds of a date, stay exact."""
    if isinstance(value, np.ndarray):
        return [_rounded(one) if np.isfinite(one) else None for one in value.astype(float).tolist()]
    if isinstance(value, dict):
        return {key: _rounded(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_rounded(one) for one in value]
    if not isinstance(value, float) or not np.isfinite(value):
        return value
    return int(value) if value.is_integer() else float(f"{value:.6g}")


def _json(data: Any) -> str:
    """JSON that is safe inside a script element."""
    text = json.dumps(data, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")
