"""What holds for every live part: it can be read without scripts, loads nothing else, and is made."""

import base64
import gzip
import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.live.pages import DOCS, STATIC, blocks, build, in_node, node
from tests.serve.browser import Browser
from weft.export.page import joined

DATA = 5_000_000
"""Bytes that all parts may have together."""

MODEL = 1_500_000
"""Bytes that the model of one part may have."""


def test_every_part_stands_in_a_chapter_and_is_small() -> None:
    programs = {path.stem for path in STATIC.glob("*.js")} - {"live"}
    assert programs == set(blocks())
    assert sum(path.stat().st_size for path in STATIC.rglob("*.*")) < DATA


def test_the_opened_transformer_takes_600_kb_to_load() -> None:
    names = ("live.js", "live.css", "transformer.js", "models/heads.js")
    files = [*(STATIC.joinpath(name).read_bytes() for name in names), joined("weft.js").encode()]
    assert sum(len(gzip.compress(one)) for one in files) < 600_000  # as a server sends them


@pytest.mark.parametrize("path", sorted(STATIC.glob("models/*.js")), ids=lambda path: path.stem)
def test_a_model_is_small(path: Path) -> None:
    line = path.read_text("utf-8").splitlines()[1]
    content = json.loads(line.removeprefix(f'live.give("{path.stem}", ').removesuffix(");"))
    packed = isinstance(content, str) and content.startswith("H4sI")  # base64 of gzip
    assert (len(base64.b64decode(content)) if packed else len(line)) <= MODEL


@pytest.mark.parametrize("name", sorted(blocks()))
def test_a_part_without_scripts_is_a_picture_or_a_verdict(name: str, site: Path, chromium: Browser) -> None:
    chromium.send("Emulation.setScriptExecutionDisabled", value=True)
    try:
        chromium.open((site / f"{name}.html").as_uri())
        still = "document.querySelector('.live-still, .live-verdict')"
        text, height = chromium.run(f"[{still}.textContent, {still}.offsetHeight]")
        drawn = chromium.run("document.querySelector('.live-still img')?.getAttribute('alt') ?? ''")
    finally:
        chromium.send("Emulation.setScriptExecutionDisabled", value=False)
    assert len(text) > 60 and height > 15
    assert name == "vote" or ((DOCS / "pictures" / "live" / f"{name}.png").is_file() and drawn)


@node
@pytest.mark.parametrize(
    ("language", "wanted"),
    [
        ("en", ["−1,234,567.89", "1,670", "0.00", "10,000"]),
        *(
            (one, ["−1\u202f234\u202f567,89", "1670", "0,00", "10\u202f000"])
            for one in ("hr", "es", "pl", "ru")
        ),
    ],
)
def test_numbers_are_in_the_language_of_the_page(language: str, wanted: list[str], tmp_path: Path) -> None:
    script = f"""(() => {{
      globalThis.document = {{ documentElement: {{ lang: '{language}' }} }};
      return [live.number(-1234567.891), live.local(1670), live.number(-0.001), live.local(10000)];
    }})()"""
    assert in_node("reach", script, tmp_path) == wanted


def test_a_page_without_parts_loads_nothing_of_them(site: Path) -> None:
    assert "live.js" not in (site / "index.html").read_text("utf-8")
    assert "live.js" in (site / f"{min(blocks())}.html").read_text("utf-8")


def test_a_wide_table_scrolls_and_shows_it(tmp_path: Path, chromium: Browser) -> None:
    """KaTeX hides the source of a formula at its place, which must not widen the page."""
    hidden = '<span style="position: absolute">P(new)</span>'
    page = tmp_path / "wide.html"
    page.write_text(
        f"""<link rel="stylesheet" href="{(STATIC.parent / "weft.css").as_uri()}">
        <meta name="viewport" content="width=device-width"><article class="bd-article"
        style="--pst-color-background: white; --pst-color-text-muted: grey">
        <table><tr><td><div style="width: 400px">wide</div></td><td>{hidden}</td></tr></table></article>""",
        "utf-8",
    )
    chromium.screen(360, 740, phone=True)
    chromium.open(page.as_uri())
    assert chromium.run("document.documentElement.scrollWidth") <= 360
    assert "gradient" in chromium.run("getComputedStyle(document.querySelector('table')).backgroundImage")


@pytest.mark.slow
@pytest.mark.usefixtures("site")  # what it needs is installed
def test_a_part_speaks_the_language_of_its_page(tmp_path: Path, chromium: Browser) -> None:
    page = build(tmp_path, "attention", language="hr") / "attention.html"
    chromium.open(page.as_uri())
    chromium.wait("document.querySelector('.live[data-ready]')")
    shown = chromium.run(
        "[...document.querySelectorAll('.live-title, .live-stage')].map((one) => one.textContent).join()"
    )
    assert "Pažnja: ručni izračun" in shown and "podijeljen s √d: sličnosti od oko" in shown
    assert "divided by" not in shown and "query" not in shown


@pytest.mark.slow
def test_everything_is_made(tmp_path: Path) -> None:
    line = [sys.executable, str(DOCS / "live" / "make.py"), "--quick", str(tmp_path)]
    done = subprocess.run(line, capture_output=True, text=True, check=False, timeout=900)
    assert done.returncode == 0, done.stderr[-3000:]
    made = {path.name for path in (tmp_path / "models").iterdir()}
    assert made == {path.name for path in (STATIC / "models").iterdir()}
    kept = json.loads((DOCS.parent / "tests" / "live" / "expected.json").read_text("utf-8"))
    assert set(json.loads((tmp_path / "expected.json").read_text("utf-8"))) == set(kept)
