"""A site of the live parts, and a Chromium; skipped, and said so, without them."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.live.pages import build
from tests.serve.browser import Browser, found

SIZES = {"desktop": (1280, 900), "phone": (360, 740)}


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with one page for each part."""
    for name in ("myst_parser", "pydata_sphinx_theme", "sphinxcontrib.katex"):
        pytest.importorskip(name, reason=f"{name} is not installed: make docs")
    return build(tmp_path_factory.mktemp("live"))


@pytest.fixture(scope="session")
def chromium(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    if found() is None:
        pytest.skip("no Chromium on this machine: apt install chromium")
    one = Browser(tmp_path_factory.mktemp("chromium"))
    yield one
    one.close()


@pytest.fixture(params=SIZES)
def opened(
    request: pytest.FixtureRequest, site: Path, chromium: Browser
) -> Iterator[Callable[[str], Browser]]:
    """Opens the page of a part from the disk and waits until it runs; then checks what all parts keep."""
    width, height = SIZES[request.param]

    def open_part(name: str) -> Browser:
        chromium.events.clear()
        chromium.send("Emulation.setFocusEmulationEnabled", enabled=True)  # as in a window in front
        chromium.screen(width, height, phone=request.param == "phone")
        chromium.open((site / f"{name}.html").as_uri())
        chromium.wait("document.querySelector('.live[data-ready]')")
        return chromium

    yield open_part
    assert chromium.complaints() == []
    assert all(one.startswith(("file:", "data:", "blob:")) for one in chromium.addresses())
    assert chromium.run("document.documentElement.scrollWidth") <= width
    unnamed = (
        "[...document.querySelectorAll('.live-stage :is(input, select, textarea, button, svg, canvas)')]"
    )
    unnamed += ".filter((one) => !one.labels?.length && !one.textContent.trim() && !one.ariaLabel).length"
    assert chromium.run(unnamed) == 0
