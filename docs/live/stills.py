"""Pictures of the live parts as they start, for pages without scripts: python docs/live/stills.py [NAME ...]

Needs Chromium. Each is docs/pictures/live/NAME.png; live.py places it. Read next: ../_ext/live.py.
"""

import base64
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from tests.live.pages import blocks, build  # noqa: E402
from tests.serve.browser import Browser  # noqa: E402

FOLDER = ROOT / "docs" / "pictures" / "live"
WIDTH = 760
"""Pixels of a page's text column."""

SHOWN = """(() => {
  const { left, top, width, height } = document.querySelector('.live-stage').getBoundingClientRect();
  return [left + scrollX, top + scrollY, width, height];
})()"""


def main(names: list[str]) -> None:
    """Draw the parts of these names, or all; votes open without scripts and need none."""
    FOLDER.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        site, browser = build(Path(folder)), Browser(Path(folder) / "chromium")
        try:
            for name in names or sorted(set(blocks()) - {"vote"}):
                browser.screen(WIDTH, 3000)  # so high that the sum below the matrices covers none of them
                browser.open((site / f"{name}.html").as_uri())
                browser.wait("document.querySelector('.live[data-ready]')")
                x, y, width, height = browser.run(SHOWN)
                clip = {"x": x, "y": y, "width": width, "height": height, "scale": 1}
                shot = browser.send("Page.captureScreenshot", clip=clip, captureBeyondViewport=True)
                (FOLDER / f"{name}.png").write_bytes(base64.b64decode(shot["data"]))
                print(f"{name}.png: {(FOLDER / f'{name}.png').stat().st_size:,} bytes", flush=True)
        finally:
            browser.close()


if __name__ == "__main__":
    main(sys.argv[1:])
