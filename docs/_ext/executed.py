"""Keeps the outputs of pages that run in docs/_executed, so that a fresh clone builds without running them.

MyST-NB looks into the cache in build/jupyter-cache before it runs a page. This extension fills that cache
from docs/_executed before a build and writes new outputs back after it. Only code cells are kept.
Each of these pages begins with a link to its notebook.
"""

import os
from collections.abc import Sequence
from contextlib import suppress
from copy import deepcopy
from pathlib import Path

import nbformat
from docutils import nodes
from jupyter_cache import get_cache
from myst_nb.core import render, utils
from notebooks import Page, clean
from sphinx.addnodes import download_reference
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.locale import _
from sphinx.transforms import SphinxTransform

RUNS = "---\nfile_format: mystnb\n"
"""How a page with code that runs begins."""


def setup(app: Sphinx) -> dict[str, bool]:
    """Called by Sphinx."""
    app.connect("builder-inited", fill)
    app.connect("env-updated", keep)
    app.add_transform(Download)
    render.coalesce_streams = joined
    return {"parallel_read_safe": True, "parallel_write_safe": True}


class Download(SphinxTransform):
    """Puts the link to its notebook below the title of a page that runs."""

    default_priority = 22  # after translation

    def apply(self, **kwargs: object) -> None:
        page = self.env.docname
        title = self.document.next_node(nodes.title)
        if title is None or not self.env.doc2path(page).read_text("utf-8").startswith(RUNS):
            return
        made = Path(self.app.outdir).parent / "jupyter_execute" / f"{page}.ipynb"
        link = download_reference("", "", reftarget=f"/{os.path.relpath(made, self.app.srcdir)}")
        words = _("Download this page as a notebook")
        link += nodes.literal(words, words, classes=["xref", "download", "myst-nb"])
        title.parent.insert(1, nodes.paragraph("", "", link))


def fill(app: Sphinx) -> None:
    """What docs/_executed holds enters the cache."""
    cache = get_cache(app.config.nb_execution_cache_path)
    for path in sorted(Path(app.srcdir, "_executed").rglob("*.ipynb")):
        cache.cache_notebook_file(path, uri=str(path), check_validity=False, overwrite=True)


def keep(app: Sphinx, env: BuildEnvironment) -> list[str]:
    """Writes outputs to docs/_executed, and clean notebooks for download; removes those of former pages."""
    folder = Path(app.srcdir, "_executed")
    known = getattr(env, "nb_metadata", {})  # MyST-NB's
    ran = {name for name, one in known.items() if one.get("exec_data")}
    cache = get_cache(app.config.nb_execution_cache_path)
    for name in sorted(ran):
        made = Path(app.outdir).parent / "jupyter_execute" / f"{name}.ipynb"
        with suppress(FileNotFoundError, KeyError):  # not read in this build, and the cache is gone
            # MyST-NB writes a page without its outputs here where it took them from the cache
            _, book = cache.merge_match_into_notebook(nbformat.read(made, as_version=4))
            _write(deepcopy(book), folder / f"{name}.ipynb")
            if book.metadata.get("title") != name:  # else it was cleaned in an earlier build
                page = Page(name, app.config.html_baseurl, language=app.config.language)
                nbformat.write(clean(book, page), made)
    for path in sorted(folder.rglob("*.ipynb")):
        page = Path(app.srcdir, path.relative_to(folder)).with_suffix(".md")
        if not (page.exists() and page.read_text("utf-8").startswith(RUNS)):  # not: did not run in this build
            path.unlink()
    return []


def joined(outputs: Sequence[nbformat.NotebookNode]) -> list[nbformat.NotebookNode]:
    """Outputs with each stream whole.

    IPython sends what a %%bash cell prints in pieces of 100 bytes; MyST-NB would end a line after each.
    """
    found: list[nbformat.NotebookNode] = []
    for output in outputs:
        last = found[-1] if found else {}
        if output["output_type"] == "stream" and last.get("name") == output["name"]:
            found[-1]["text"] += output["text"]
        else:
            found.append(nbformat.from_dict(output))
    return list(utils.coalesce_streams(found))


def _write(book: nbformat.NotebookNode, place: Path) -> None:
    book.cells = [cell for cell in book.cells if cell.cell_type == "code"]
    for number, cell in enumerate(book.cells):
        cell["id"] = f"cell-{number}"
        cell.metadata.pop("execution", None)
        if "remove-stderr" in cell.metadata.get("tags", []):  # warnings name paths of the machine
            cell.outputs = [output for output in cell.outputs if output.get("name") != "stderr"]
    language = {"name": "python", "pygments_lexer": "ipython3"}
    book.metadata = {"kernelspec": book.metadata["kernelspec"], "language_info": language}
    text = nbformat.writes(book) + "\n"
    if not place.exists() or place.read_text("utf-8") != text:
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text, "utf-8")
