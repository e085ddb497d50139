"""Inline code becomes a link on the site where it names a setting, a Python object or a source file.

So Markdown needs no mark for it: `training.clip_norm`, on the page of a task also `data.source`;
`weft.nn.cells.lstm.LSTM`; `weft/nn/cells/lstm.py` or `tests/test_cli.py::test_help`.
"""

import re
from typing import Any

from docutils import nodes
from sources import ROOT, link
from sphinx.application import Sphinx
from sphinx.transforms.post_transforms import SphinxPostTransform
from sphinx.util.nodes import make_refnode

SOURCE = re.compile(r"(?:weft|tests)/[\w/]+\.py")


def setup(app: Sphinx) -> dict[str, bool]:
    """Called by Sphinx."""
    app.add_post_transform(InlineCode)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


class InlineCode(SphinxPostTransform):
    """Gives inline code its link."""

    default_priority = 15  # after Sphinx has resolved the links of the page

    def run(self, **kwargs: Any) -> None:
        """Every inline code that is in no link and no heading."""
        for node in list(self.document.findall(nodes.literal)):
            above = node.parent
            while above is not None and not isinstance(above, nodes.reference | nodes.title):
                above = above.parent
            target = None if above is not None else self._target(node.astext())
            if target is not None:
                target.children = [node.deepcopy()]
                node.replace_self(target)

    def _target(self, text: str) -> nodes.reference | None:
        """Where a text leads, if anywhere."""
        file, _, symbol = text.partition("::")
        if SOURCE.fullmatch(file) and (ROOT / file).is_file():
            return link(text, file, symbol, "../" * self.env.docname.count("/"))
        known = self.env.domaindata
        task = self.env.docname.rpartition("/")[2]
        settings = known["std"]["objects"]
        place = settings.get(("setting", text)) or settings.get(("setting", f"{task}.{text}"))
        place = place or known["py"]["objects"].get(text)
        return (
            make_refnode(self.app.builder, self.env.docname, *place[:2], nodes.literal()) if place else None
        )
