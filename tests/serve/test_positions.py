"""A sentence that is too long for a model with learned positions is refused, and spoils no other request."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from tests.commands import corpus
from tests.commands.shell import weft
from tests.serve.client import post
from tests.serve.conftest import application, listening

PARTS = (
    "{use: transformer, size: 12, num_layers: 1, num_heads: 2, inner: 19, positions: learned, max_length: 11}"
)


@pytest.fixture(scope="module")
def short(library: None, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The server of a run with 11 positions."""
    folder = tmp_path_factory.mktemp("short")
    changes = [f"model.encoder={PARTS}", f"model.decoder={PARTS}", "model.embedding.size=12"]
    recipe = corpus.make(folder / "toy")
    weft("train", recipe, "--run", folder / "run", "training.max_updates=40", *changes, code=0)
    with listening(application(folder / "run", tokens=300)) as where:
        yield where


def test_the_others_of_a_batch_are_answered(short: str) -> None:
    def asked(text: str | list[str]) -> Any:
        return post(f"{short}/translate", {"q": text, "source": "xx", "target": "yy"})

    long = "beta " * 13
    texts = ["alpha", long, "gamma delta", ["alpha", long], ["alpha", "beta"]] * 3
    with ThreadPoolExecutor(len(texts)) as pool:
        replies = list(pool.map(asked, texts))
    assert [one.status for one in replies] == [200, 400, 200, 400, 200] * 3
    said = replies[1].body["error"]
    assert said.startswith("the sentence 'beta beta") and "expected at most 11 positions, got 13" in said
    assert replies[3].body["error"] == said
    assert all(one.body == asked(text).body for one, text in zip(replies, texts, strict=True))
