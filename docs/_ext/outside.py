"""What a page in another language needs: links to the English site, and a count of its translations."""

from pathlib import PurePosixPath

from docutils import nodes
from languages import UNTRANSLATED, catalog, messages
from sphinx import addnodes
from sphinx.transforms import SphinxTransform
from sphinx.transforms.post_transforms import SphinxPostTransform
from sphinx.util.nodes import extract_messages


class OutsideLinks(SphinxPostTransform):
    """Links to pages that only the English site has lead there; before MyST calls them unknown."""

    default_priority = 8

    def run(self, **kwargs: object) -> None:
        if not self.app.tags.has("course"):
            return
        up = "../" * (self.env.docname.count("/") + 1)
        for node in list(self.document.findall(addnodes.pending_xref)):
            target = node["reftarget"]
            if node.get("refdomain") == "doc" and target not in self.env.found_docs:
                anchor = node.get("reftargetid")
                address = f"{up}{PurePosixPath(target)}.html" + (f"#{anchor}" if anchor else "")
                link = nodes.reference("", "", refuri=address, internal=True)
                link += node.children
                node.replace_self(link)


class Anchors(SphinxTransform):
    """Gives a page the anchors of its English headings back: MyST forgets them at each translated text."""

    default_priority = 21  # after Sphinx has translated

    def apply(self, **kwargs: object) -> None:
        facts = self.env.metadata[self.env.docname]
        if "english_slugs" in facts:
            facts["myst_slugs"] = facts.pop("english_slugs")  # type: ignore[call-overload]


class Cells(SphinxTransform):
    """Gives tables inside directives the source that MyST forgets; without one, Sphinx translates no cell."""

    default_priority = 1

    def apply(self, **kwargs: object) -> None:
        for cell in self.document.findall(nodes.entry):
            for text in cell.findall(nodes.paragraph):
                text.source = text.source or self.document["source"]


class Formulas(SphinxTransform):
    """Translates the words in display formulas: Sphinx does it in the syntax of reStructuredText."""

    default_priority = 19  # before Sphinx translates

    def apply(self, **kwargs: object) -> None:
        known = messages(catalog(self.config.language, self.env.docname))
        for node in self.document.findall(nodes.math_block):
            if said := known.get(node.astext()):
                node.rawsource = said
                node[:] = [nodes.Text(said)]


class Progress(SphinxTransform):
    """Notes which texts of a page have no translation, and which translations the page no longer needs."""

    default_priority = 18  # before Formulas

    def apply(self, **kwargs: object) -> None:
        if self.config.language == "en":
            return
        page = self.env.docname
        known = {one.id: one for one in catalog(self.config.language, page) if one.id}
        live = messages(catalog(self.config.language, "live"))  # also has the titles of live parts
        done = {"file_format", "mystnb", *live.values()}
        done |= set(messages(catalog(self.config.language, "sphinx")).values())
        every = {text for _, text in extract_messages(self.document)} - done
        said = {text for text in every if UNTRANSLATED.sub("", text)}
        ready = {text for text, one in known.items() if one.string and not one.fuzzy}
        facts = self.env.metadata[page]
        facts.update(  # type: ignore[call-overload]
            messages=len(said), missing=sorted(said - ready), stale=sorted(known.keys() - every - live.keys())
        )
        facts["english_slugs"] = facts.get("myst_slugs", {})
