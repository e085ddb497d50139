"""Given texts are scored as the search scores its own, and a run with its copy writes the same."""

import shutil
from pathlib import Path
from typing import Any

import pytest
import torch

import weft as package
from tests.commands.given import scored_alike
from tests.commands.shell import refused, weft
from tests.shared import shared_run
from tests.slow import slow
from weft.run import open_run
from weft.tasks.pictures.pictures import source
from weft.tasks.seq2seq.translator import SearchResult

UNLIKE = {
    "translate": ("data.vocabulary.kind=character", "is not that of the first run"),
    "caption": ("data.size=8", "its shape of pictures is (8, 8, 3)"),
    "speech": ("data.sound.bins=17", "its sound is"),
}
"""A change of a run that cannot write together with this one, and why."""


def searched(name: str, run: Path, folder: Path) -> tuple[Path, list[Any]]:
    """A file of the sources that `weft evaluate` scores, and a scored text for each."""
    toy, file = run.parent / "toy", folder / "sources.txt"
    if name == "caption":
        return toy / "valid.tsv", captioned(run)
    model: Any = package.load(run, device="cpu")
    text = (toy / ("test.xx" if name == "translate" else "test.tsv")).read_text()
    lines = [line.split("\t")[0] for line in text.splitlines()]
    if name == "speech":
        return toy / "test.tsv", [one[0] for one in model.transcribe([toy / line for line in lines])]
    lines = lines if name == "translate" else lines[1:]
    file.write_text("".join(f"{line}\n" for line in lines))
    return file, [one[0] for one in model.translate(lines)]


def captioned(run: Path) -> list[Any]:
    """The true captions, scored one step after the other, to the end; the toy's searches have none."""
    captioner, opened, found = package.load(run), open_run(run, device="cpu"), []
    for line in (run.parent / "toy" / "valid.tsv").read_text().splitlines():
        name, text = line.split("\t")
        tokens, logp, token = opened.pipeline.target.encode(text), 0.0, 2
        x, mask = source(
            captioner._read(run.parent / "toy" / "pictures" / name)[None], captioner._front.places
        )
        state = opened.model.start(x, mask)
        for word in [*tokens, 3]:
            after, state = opened.model.step(torch.tensor([token]), state)
            logp, token = logp + float(after[0, word]), word
        found.append(SearchResult(text, 0.0, logp, tokens))
    return found


@pytest.mark.parametrize("name", ["translate", "summarise without copying", *slow(["caption", "speech"])])
def test_given_texts_are_scored_and_runs_write_together(name: str, tmp_path: Path) -> None:
    run = shared_run(name)
    file, found = searched(name, run, tmp_path)
    split = ("--split", "valid") if name == "caption" else ()
    scored_alike(run, found, tmp_path, *split)
    shutil.copytree(run, tmp_path / "copy")
    both = weft("predict", run, file, "--ensemble", tmp_path / "copy", code=0)
    assert both.lines == weft("predict", run, file, code=0).lines
    given = ("evaluate", run, *split, "--score", tmp_path / "given.txt")
    assert "--plot" in refused(weft(*given, "--plot", tmp_path / "x.png"))
    assert "combined with beam" in refused(weft(*given, "--beam", 3))
    if name in UNLIKE:
        change, why = UNLIKE[name]
        (recipe,) = (run.parent / "toy").glob("*.yaml")
        short = (f"data.folder={run.parent / 'toy'}", "training.max_updates=1")
        weft("train", recipe, "--run", tmp_path / "other", *short, change, code=0)
        assert why in refused(weft("predict", run, file, "--ensemble", tmp_path / "other"))
