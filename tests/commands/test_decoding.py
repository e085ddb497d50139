"""How answers are searched and given ones scored, as a user asks for it; what is refused; shortlists."""

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

import weft as package
from tests.commands import corpus
from tests.commands.corpus import WORDS, translated
from tests.commands.given import scored_alike
from tests.commands.shell import refused, weft
from tests.shared import shared_run
from tests.slow import slow
from weft.run import load, open_run
from weft.search import offered
from weft.search.hypotheses import Hypotheses
from weft.tasks.pictures.pictures import source
from weft.tasks.seq2seq.batch_search import BatchSearch
from weft.tasks.seq2seq.translator import SearchResult

LINES = ["alpha beta", "gamma", "", "beta gamma delta alpha", "theta zeta eta", "iota iota"]
TEXT = "".join(f"{line}\n" for line in LINES).encode()
RIGHT = [translated(line) for line in LINES]


def answers(run: Path, *options: object) -> list[str]:
    return weft("predict", run, *options, stdin=TEXT, code=0).lines


def test_a_prefix_begins_and_a_required_phrase_is_in_every_answer(trained: Path) -> None:
    for line, right in zip(answers(trained, "--prefix", "nove sei"), RIGHT, strict=True):
        assert line.startswith("nove sei") if right else not line
    for line, right in zip(answers(trained, "--require", "nove sei", "--require", "due"), RIGHT, strict=True):
        assert not right or ("nove sei" in line and "due" in line.replace("nove sei", ""))
    assert answers(trained, "--require", "uno")[0] == RIGHT[0]  # what is there anyway changes nothing


def test_lengths_repetitions_and_groups(trained: Path) -> None:
    lengths = [len(line.split()) for line in answers(trained, "--min-length", 5)]
    assert lengths[:3] == [5, 5, 0] and lengths[4:] == [5, 5] and lengths[3] >= 5
    for line in answers(trained, "--min-length", 7, "--no-repeat-ngram", 1):
        assert len(set(line.split())) == len(line.split())
    apart = answers(trained, "--diverse", 4, "--nbest", 4, "--set", "diversity=9")
    assert len(apart) == 24 and len(set(apart[:4])) >= 3
    assert answers(trained, "--diverse", 2)[0] == RIGHT[0]
    assert answers(trained, "--coverage", 0.2, "--set", "normalisation=gnmt") == RIGHT
    assert answers(trained, "--set", "precision=bfloat16") == RIGHT


@pytest.mark.parametrize("search", [(), ("--diverse", 3), ("--require", "sei"), ("--beam", 1)], ids=str)
def test_a_batch_has_a_budget_of_tokens_that_changes_no_answer(
    trained: Path, monkeypatch: pytest.MonkeyPatch, search: tuple[object, ...]
) -> None:
    expected = answers(trained, "--scores", *search)
    monkeypatch.setattr(offered, "TOKENS", 100)  # two sources at a time, or one
    assert answers(trained, "--scores", *search) == expected


def test_a_text_is_no_longer_than_the_budget_allows(trained: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(offered, "TOKENS", 30)
    options = "--beam", 3, "--set", "max_extra=100000"
    assert [len(line.split()) for line in answers(trained, *options, "--min-length", 9)] == [9, 9, 0, 9, 9, 9]
    said = refused(weft("predict", trained, *options, "--min-length", 10, stdin=TEXT))
    assert "they take 11 tokens, the end included, but at most 10 can be written" in said


def test_an_ensemble_of_a_run_with_its_copy_is_the_run(trained: Path, blind: Path, tmp_path: Path) -> None:
    alone = answers(trained, "--scores")
    shutil.copytree(trained, tmp_path / "copy")
    both = answers(trained, "--scores", "--ensemble", tmp_path / "copy")
    for one, two in zip(alone, both, strict=True):
        assert one.split("\t")[1] == two.split("\t")[1]
        assert float(one.split("\t")[0]) == pytest.approx(float(two.split("\t")[0]), abs=2e-4)
    assert answers(trained, "--ensemble", blind) == RIGHT  # the other one knows next to nothing
    evaluated = weft("evaluate", trained, "--ensemble", blind)
    assert ", 2 runs together" in evaluated.out.splitlines()[0]
    assert evaluated.code == 0 and "BLEU" in evaluated.out


def test_coverage_needs_attention_and_one_model(trained: Path, blind: Path) -> None:
    said = refused(weft("predict", blind, "--coverage", 1, stdin=b"alpha\n"))
    assert "needs attention, which this model lacks" in said
    assert "coverage: cannot be combined with an ensemble" in refused(
        weft("predict", trained, "--ensemble", blind, "--coverage", 1, stdin=b"alpha\n")
    )


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


ALL = "shortlist=100"
"""More tokens than there are."""


@pytest.fixture(scope="module")
def run(trained: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of its own, of which the shortlist is part after the first search."""
    folder = tmp_path_factory.mktemp("short") / "run"
    shutil.copytree(trained, folder)
    return folder


@pytest.fixture
def written(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Hypotheses]]:
    """What each search found."""
    found: list[Hypotheses] = []
    real = BatchSearch._search

    def search(self: BatchSearch, *given: Any) -> Hypotheses:
        found.append(real(self, *given))
        return found[-1]

    monkeypatch.setattr(BatchSearch, "_search", search)
    yield found


def test_it_is_made_at_the_first_search_and_kept_without_the_training_data(
    run: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    assert answers(run) == RIGHT and not (run / "shortlist.json").exists()
    first, second = (weft("predict", run, "--set", "shortlist=1", stdin=TEXT) for _ in range(2))
    assert first.lines == second.lines == RIGHT
    assert first.err == "making shortlist.json from the training pairs, for decoding.shortlist\n"
    assert second.err == ""
    made = (run / "shortlist.json").read_bytes()
    moved = tmp_path / "moved"
    shutil.copytree(run, moved)
    gone = "data.train=/nowhere/train"
    recipe = (moved / "recipe.yaml").read_text()
    train = next(line for line in recipe.splitlines() if line.strip().startswith("train:"))
    (moved / "recipe.yaml").write_text(
        recipe.replace(train, f"  {gone.removeprefix('data.').replace('=', ': ')}")
    )
    assert answers(moved, "--set", "shortlist=1") == RIGHT
    assert (run / "shortlist.json").read_bytes() == made
    (moved / "shortlist.json").unlink()
    said = refused(weft("predict", moved, "--set", "shortlist=1", stdin=TEXT))
    assert "shortlist.json is missing" in said and "--set shortlist=100` and copy the file" in said


def test_a_damaged_one_is_made_again(run: Path) -> None:
    assert answers(run, "--set", "shortlist=2") == RIGHT
    path = run / "shortlist.json"
    made = path.read_bytes()
    path.write_bytes(made[:50])
    assert answers(run, "--set", "shortlist=2") == RIGHT
    assert path.read_bytes() == made


@pytest.mark.parametrize(
    "options",
    [
        ("--scores",),
        ("--scores", "--beam", 1),
        ("--scores", "--nbest", 3),
        ("--prefix", "nove sei"),
        ("--require", "nove sei"),
        ("--diverse", 2, "--nbest", 2),
        ("--coverage", 0.2),
        ("--min-length", 7, "--no-repeat-ngram", 1),
        ("--sample", "--seed", 3),
        ("--set", "precision=bfloat16"),
        ("--set", "precision=int8"),
    ],
    ids=str,
)
def test_with_every_token_nothing_changes(run: Path, options: tuple[object, ...]) -> None:
    assert answers(run, *options, "--set", ALL) == answers(run, *options)


def test_only_kept_and_required_tokens_are_written(
    run: Path, tmp_path: Path, written: list[Hypotheses]
) -> None:
    opened = open_run(run, device="cpu", changes=["decoding.shortlist=1", "decoding.nbest=3"])
    translator: Any = opened.pipeline.predictor(opened.model)
    assert [best[0].text for best in translator.translate(["alpha gamma", "gamma"])] == ["uno tre", "tre"]
    (found,) = written
    names = [WORDS["alpha"], WORDS["gamma"]]
    allowed = {*range(4), *(opened.pipeline.target.encode(name)[0] for name in names)}  # type: ignore[attr-defined]
    assert len(set(found.tokens.flatten().tolist()) - allowed) <= 1  # the most frequent one
    terms = tmp_path / "terms.tsv"
    terms.write_text("alpha\tnove\n")
    lines = answers(run, "--glossary", terms, "--set", "shortlist=1")
    assert "nove" in lines[0] and "nove" in lines[3] and lines[1] == RIGHT[1]
    assert all(
        line.startswith("sei") for line in answers(run, "--prefix", "sei", "--set", "shortlist=1") if line
    )


def test_a_training_that_asks_for_it_leaves_it_in_the_run(tmp_path: Path) -> None:
    changes = "decoding.shortlist=2", "training.max_updates=2", "training.validate_every=2"
    weft("train", corpus.make(tmp_path / "toy"), "--run", tmp_path / "run", *changes, code=0)
    assert (tmp_path / "run" / "shortlist.json").exists()
    evaluated = weft("evaluate", tmp_path / "run")
    assert evaluated.code == 0 and "shortlist 2" in evaluated.out
    assert weft("inspect", tmp_path / "run", "alpha", "--output", tmp_path / "seen.html").code == 0
    with torch.inference_mode():
        assert load(tmp_path / "run").predict("alpha") is not None
