"""The page's neighbours and analogies are those of the stored vectors."""

import base64
import json
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from tests.live.pages import STATIC, in_node, node
from tests.serve.browser import Browser


@node
def test_neighbours_and_analogies(tmp_path: Path) -> None:
    text = (STATIC / "models" / "vectors.js").read_text("utf-8")
    found = re.search(r"live\.give\(\"vectors\", (.*)\);\n", text)
    assert found is not None
    data = json.loads(found[1])
    names = data["words"].split(" ")
    rows = np.frombuffer(base64.b64decode(data["table"]), np.int8).reshape(-1, data["size"]).astype(float)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)

    def nearest(vector: np.ndarray, without: list[str]) -> list[tuple[str, float]]:
        cosines = rows @ vector / np.linalg.norm(vector)
        order = [at for at in np.argsort(-cosines) if names[at] not in without]
        return [(names[at], cosines[at]) for at in order[:8]]

    of = {name: rows[at] for at, name in enumerate(names)}
    script = """(async () => {
      const { table, neighbours, analogy } = live.parts.vectors, all = table(await live.data('vectors'));
      return [neighbours(all, 'folder'), analogy(all, 'row', 'column', 'rows')];
    })()"""
    wanted = [
        nearest(of["folder"], ["folder"]),
        nearest(of["column"] - of["row"] + of["rows"], ["row", "column", "rows"]),
    ]
    for ours, theirs in zip(wanted, in_node("vectors", script, tmp_path, "vectors"), strict=True):
        assert [name for name, _ in ours] == [name for name, _ in theirs]
        assert [one for _, one in ours] == pytest.approx([one for _, one in theirs], abs=1e-9)


def test_a_word_that_is_typed(opened: Callable[[str], Browser]) -> None:
    page = opened("vectors")
    page.run("document.querySelector('.live-stage input').select()")
    page.type("chart")
    rows = "document.querySelectorAll('.live-bars')[0].rows"
    assert (
        page.run(f"{rows}.length") == 8 and "chart" not in page.run(f"{rows}[0].cells[0].textContent").split()
    )
    page.run("document.querySelector('.live-stage input').select()")
    page.type("zzz")
    assert page.run("document.querySelector('.live-columns p').textContent").startswith("Not among the")
