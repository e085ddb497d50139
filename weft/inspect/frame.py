"""The page of `weft inspect` inside a notebook or a page of documentation, open at one of its views.

Read next: page/html.py, which writes it.
"""

import base64
import html
import json
from pathlib import Path

STYLE = (
    ".weft-frame iframe { width: 100%; border: 1px solid #8886; border-radius: .4rem; }\n"
    ".weft-frame img { max-width: 100%; }\n"
    "@media (scripting: none) { .weft-frame iframe { display: none; } }\n"
    "@media (scripting: enabled) { .weft-frame img { display: none; } }"
)

OPEN = """<script>
(() => {
  const bar = document.querySelector('nav')?.offsetHeight ?? 0;
  const go = (section) => scrollTo(0, section.getBoundingClientRect().top + scrollY - bar - 8);
  addEventListener('click', (event) => {
    const link = event.target.closest('a[href^="#"]');
    if (link) { event.preventDefault(); go(document.getElementById(link.hash.slice(1))); }
  });
  const name = (section) => section.ariaLabel?.toLowerCase().replace(/[^a-z]+/g, '-');
  const first = [...document.querySelectorAll('main section')].find((one) => VIEW.startsWith(name(one)));
  if (first) go(first);
})();
</script>
"""
"""Links of the page and its first view, inside the frame: there "#view-2" would open the page around it."""


class InspectorFrame:
    """A page of `weft inspect` as the last value of a notebook's cell, or its picture where scripts are off.

    The page is inside the output, so it also works without the run, and offline. A browser draws it when it
    scrolls into view.

    Args:
        page: path of the page.
        picture: path of an SVG of the view to open, as `weft inspect --views` writes it.
        height: of the frame, in pixels.

    Raises:
        FileNotFoundError: one of the files is not there.

    Example:
        >>> from pathlib import Path
        >>> from tempfile import TemporaryDirectory
        >>> with TemporaryDirectory() as folder:
        ...     page, picture = Path(folder, "inspect.html"), Path(folder, "alignment.svg")
        ...     _ = page.write_text("<p>the page</p>"), picture.write_text("<svg/>")
        ...     sorted(InspectorFrame(page, picture)._repr_mimebundle_())
        ['image/svg+xml', 'text/html']
    """

    def __init__(self, page: str | Path, picture: str | Path, *, height: int = 620) -> None:
        self.page = (
            Path(page)
            .read_text("utf-8")
            .replace("</body>", OPEN.replace("VIEW", json.dumps(Path(picture).stem)) + "</body>")
        )
        self.picture = Path(picture).read_text("utf-8")
        self.title = f"What weft inspect shows: {Path(picture).stem.replace('-', ' ')}"
        self.height = height

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, str]:
        """What IPython displays: the page, and the picture for what cannot show one."""
        title, drawn = html.escape(self.title), base64.b64encode(self.picture.encode()).decode()
        return {
            "text/html": f'<div class="weft-frame"><style>{STYLE}</style>\n'
            f'<iframe loading="lazy" title="{title}" style="height: {self.height}px" '
            f'srcdoc="{html.escape(self.page)}"></iframe>\n'
            f'<img alt="{title}" src="data:image/svg+xml;base64,{drawn}"></div>',
            "image/svg+xml": self.picture,
        }
