"""Checks the links of a built site: python docs/_ext/links.py build/site

A missing page or anchor is an error, and so is a script, style or picture from another server. Links to
other sites are not followed; they are listed in SITE/../external-links.txt.
"""

import sys
from html.parser import HTMLParser
from pathlib import Path
from typing import NamedTuple
from urllib.parse import unquote, urlsplit

LOADED = {("script", "src"), ("link", "href"), ("img", "src"), ("source", "src"), ("iframe", "src")}
"""What a browser fetches by itself; `link` counts only where it loads something."""

LOADING = {"stylesheet", "preload", "icon", "modulepreload", "prefetch"}


class Page(NamedTuple):
    """What one page holds."""

    anchors: set[str]
    links: set[str]
    loaded: set[str]  # by the browser itself


class Reader(HTMLParser):
    """Collects anchors and addresses of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.page = Page(set(), set(), set())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Called for every tag."""
        found = {name: value for name, value in attrs if value}
        self.page.anchors.update(found[name] for name in ("id", "name") if name in found)
        if tag == "a" and "href" in found:
            self.page.links.add(found["href"])
        for name in [name for kind, name in LOADED if kind == tag and name in found]:
            if tag != "link" or LOADING & set(found.get("rel", "").split()):
                self.page.loaded.add(found[name])


def read(path: Path) -> Page:
    """The anchors and addresses of a file."""
    reader = Reader()
    reader.feed(path.read_text("utf-8"))
    return reader.page


def check(site: Path) -> tuple[list[str], set[str]]:
    """Mistakes, a sentence each, and the addresses outside the site."""
    pages = {path.resolve(): read(path) for path in site.rglob("*.html") if "_static" not in path.parts}
    wrong, outside = [], set()
    for path, page in sorted(pages.items()):
        name = path.relative_to(site.resolve())
        for address in sorted(page.links | page.loaded):
            parts = urlsplit(address)
            if parts.scheme or parts.netloc:
                outside.add(address)
                if address in page.loaded and parts.scheme != "data":
                    wrong.append(f"{name}: loads {address}; put the file into docs/_static")
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            if not target.exists():
                wrong.append(f"{name}: links to {address}, which is not there")
            elif parts.fragment and target in pages and unquote(parts.fragment) not in pages[target].anchors:
                wrong.append(f"{name}: links to {address}, but that page has no such anchor")
    return wrong, {address for address in outside if address.startswith("http")}


def main() -> None:
    """Prints what is wrong."""
    site = Path(sys.argv[1])
    wrong, outside = check(site)
    listed = site.parent / "external-links.txt"
    listed.write_text("".join(f"{address}\n" for address in sorted(outside)), "utf-8")
    print("\n".join(wrong) if wrong else f"Links are sound; {len(outside)} to other sites are in {listed}")
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
