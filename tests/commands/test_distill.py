"""weft distill: the student learns what its teacher writes, and nothing is written twice after a stop."""

import json
from pathlib import Path

import pytest

from tests import toys
from tests.commands.shell import content, refused, stops, untouched, weft
from weft.commands import bulk
from weft.config import read_recipe
from weft.run.train import teacher_of
from weft.run.training import begin_run
from weft.store.digests import file_digest
from weft.store.run_directory import lock

SHORT = ("training.max_updates=7", "training.validate_every=7", "training.precision=float32")


def sides(folder: Path, name: str) -> list[list[str]]:
    return [(folder / f"{name}.{end}").read_text("utf-8").splitlines() for end in ("xx", "yy")]


def test_the_student_reads_the_sources_and_writes_what_the_teacher_does(
    blind: Path, toy: Path, tmp_path: Path
) -> None:
    run, texts = tmp_path / "small", tmp_path / "small.corpus"
    search = ("--beam", 2, "--length-penalty", 0)
    weft("distill", blind, "--student", toy, "--run", run, *search, *SHORT, "model.smoothing=0.1", code=0)
    originals = blind.parent / "toy" / "train"
    said = weft("predict", blind, f"{originals}.xx", *search).lines
    assert sides(texts, "train") == [sides(originals.parent, "train")[0], said]
    assert said != sides(originals.parent, "train")[1]  # or the teacher would be no teacher
    for split in ("valid", "test"):
        assert sides(texts, split) == sides(toy.parent, split)
    recipe = read_recipe(run / "recipe.yaml").plain()
    assert recipe["data"]["folder"] == str(texts) and recipe["data"]["train"] == "train"
    assert recipe["model"]["smoothing"] == 0.1 and recipe["decoding"]["beam"] == 3
    teacher = teacher_of(run)
    assert (
        teacher is not None
        and teacher.run == str(blind)
        and teacher.weights == file_digest(blind / "model.safetensors")
    )
    for card in (run / "README.md", texts / "README.md"):
        assert str(blind) in card.read_text() and "beam 2, length penalty 0" in card.read_text()
    assert weft("evaluate", run).out.startswith("test xx-yy, 17 pairs")
    alone = weft("train", toy, "--run", tmp_path / "alone", *SHORT)
    assert alone.code == 0 and "teacher" not in (tmp_path / "alone" / "README.md").read_text()


@pytest.mark.slow
def test_other_sources_and_the_original_pairs_can_be_mixed_in(blind: Path, toy: Path, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("alpha beta\n\n\u2028gamma\n")
    (tmp_path / "b.txt").write_text("iota")
    command = ["distill", blind, "--student", toy, "--corpus", tmp_path / "texts"]
    command += ["--sources", tmp_path / "a.txt", "--sources", tmp_path / "b.txt", *SHORT]
    weft(*command, "--run", tmp_path / "run", "--mix", code=0)
    read, said = sides(tmp_path / "texts", "train")
    assert read == ["alpha beta", " gamma", "iota"] and len(said) == 3
    originals = sides(toy.parent, "train")
    assert sides(tmp_path / "texts", "mixed") == [read + originals[0], said + originals[1]]
    assert read_recipe(tmp_path / "run" / "recipe.yaml").plain()["data"]["train"] == "mixed"
    assert "together with the original pairs" in (tmp_path / "run" / "README.md").read_text()
    # Another student of the same corpus: nothing is written anew.
    before = (tmp_path / "texts" / "train.yy").stat().st_mtime_ns
    other = weft(*command, "--run", tmp_path / "other")
    assert other.code == 0 and "lines answered" not in other.err
    assert (tmp_path / "texts" / "train.yy").stat().st_mtime_ns == before
    assert teacher_of(tmp_path / "other").mixed is False  # type: ignore[union-attr]


STAGES = {
    "before the corpus is named": ("weft.run.train.Teacher.save", 0),
    "before the first chunk": ("weft.commands.bulk.answer", 0),
    "between chunks": ("weft.commands.bulk.write", 2),
    "before the chunks are joined": ("weft.commands.bulk.join", 0),
    "before the run is begun": ("weft.run.training.begin_run", 0),
    "before the recipe of the run": ("weft.run.training.dump", 0),
    "before the teacher is noted in the run": ("weft.run.train.Teacher.save", 1),
    "before the training": ("weft.run.train.train", 0),
    "before the model card": ("weft.run.train.write_card", 0),
}


@pytest.mark.slow
def test_stopped_anywhere_it_resumes_and_ends_the_same(
    blind: Path, toy: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bulk, "CHUNK", 101)  # four chunks, the last one ragged
    monkeypatch.chdir(tmp_path)
    command = ["distill", blind, "--student", toy, "--run", "run", "--beam", 1, *SHORT]
    whole = tmp_path / "whole"
    whole.mkdir()
    monkeypatch.chdir(whole)
    assert weft(*command).code == 0
    chunks: list[int] = []
    real = bulk.answer
    monkeypatch.setattr(bulk, "answer", lambda *given: chunks.append(given[1].number) or real(*given))
    monkeypatch.chdir(tmp_path)
    for name, (place, calls) in STAGES.items():
        with monkeypatch.context() as patch:
            patch.setattr(place, stops(place, calls))
            assert weft(*command).code == 130, name
    assert weft(*command).code == 0
    assert chunks in ([0, 1, 2, 3], [0, 1, 2, 2, 3])  # a chunk that was not written is answered again
    for folder in ("run.corpus/train.yy", "run.corpus/train.xx", "run/model.safetensors"):
        assert (tmp_path / folder).read_bytes() == (whole / folder).read_bytes(), folder


def test_what_a_killed_process_left_goes_and_a_corpus_has_one_writer(
    blind: Path, toy: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    command = ["distill", blind, "--student", toy, "--run", tmp_path / "run", "--beam", 1, *SHORT]
    texts = tmp_path / "run.corpus"
    with monkeypatch.context() as patch:
        patch.setattr(bulk, "remove_parts", stops("weft.commands.bulk.remove_parts", 0))
        assert weft(*command).code == 130
    assert (texts / "train.yy.parts").is_dir()
    (texts / ".writing-mixed.xx-1").write_text("half")
    with lock(texts):
        assert "another process is writing this corpus" in untouched(texts, lambda: weft(*command))
    assert weft(*command).code == 0
    assert not (texts / "train.yy.parts").exists() and not list(texts.glob(".writing-*"))


@pytest.mark.slow
def test_a_corpus_is_of_one_content_of_its_sources_and_glossary(
    blind: Path, toy: Path, tmp_path: Path
) -> None:
    sources, terms = tmp_path / "in.txt", tmp_path / "terms.tsv"
    sources.write_text("alpha beta\n" * 60)
    terms.write_text("alpha\tdue\n")
    corpus = tmp_path / "texts"
    command = ["distill", blind, "--student", toy, "--corpus", corpus, "--sources", sources, *SHORT]
    command += ["--glossary", terms]
    assert weft(*command, "--run", tmp_path / "one").code == 0
    for path, name in ((sources, "sources"), (terms, "glossary")):
        before = path.read_text()
        path.write_text(before.replace("alpha", "gamma"))
        said = refused(weft(*command, "--run", tmp_path / "two"))
        assert f"{corpus}: was written by a teacher with another {name}; remove it" in said
        path.write_text(before)
    older = json.loads((corpus / "teacher.json").read_bytes())
    older.pop("files")
    (corpus / "teacher.json").write_text(json.dumps(older))
    assert weft(*command, "--run", tmp_path / "two").code == 0


def test_what_cannot_be_distilled_is_refused(blind: Path, toy: Path, tmp_path: Path) -> None:
    command = ["distill", blind, "--student", toy, "--run", tmp_path / "run", *SHORT]
    with lock(blind):
        assert "is still being trained" in refused(weft(*command))
    assert "expected languages of the teacher (xx to yy), got xx to zz" in refused(
        weft(*command, "data.target=zz")
    )
    digests = toys.digests(tmp_path / "digests")
    said = refused(weft("distill", blind, "--student", digests, "--run", tmp_path / "run"))
    assert "expected a recipe for the task translate, got summarise" in said
    begin_run(tmp_path / "new", read_recipe(toy))
    said = refused(weft("distill", tmp_path / "new", "--student", toy, "--run", tmp_path / "run"))
    assert "has no model.safetensors" in said
    assert "--student" in refused(weft("distill", blind))
    (tmp_path / "blank.txt").write_text("\n \n")
    for name, word in (("gone.txt", "no such file"), ("blank.txt", "at least one line with text")):
        sources = [*command, "--sources", tmp_path / name]
        assert word in untouched(tmp_path, lambda sources=sources: weft(*sources))
    assert "got a file; choose another --corpus" in refused(
        weft(*command, "--corpus", tmp_path / "blank.txt")
    )
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "letter.txt").write_text("mine")
    assert "choose another --run" in untouched(tmp_path, lambda: weft(*command))
    (tmp_path / "run" / "letter.txt").unlink()
    (tmp_path / "run.corpus").mkdir()
    (tmp_path / "run.corpus" / "letter.txt").write_text("mine")
    assert "no corpus of distill" in untouched(tmp_path, lambda: weft(*command))


@pytest.mark.slow
def test_a_corpus_belongs_to_one_teacher_and_its_settings(blind: Path, toy: Path, tmp_path: Path) -> None:
    command = ["distill", blind, "--student", toy, *SHORT]
    run = ["--run", tmp_path / "run"]
    assert weft(*command, *run, "--beam", 1).code == 0
    before = content(tmp_path)
    assert "another decoding" in refused(weft(*command, *run, "--beam", 2))
    other = ["--run", tmp_path / "other", "--corpus", tmp_path / "run.corpus", "--beam", 1]
    assert "has different pairs" in refused(weft(*command, *other, f"data.valid={toy.parent}/test"))
    assert "is not a student of" in refused(weft(*command, *run, "--corpus", tmp_path / "new", "--beam", 1))
    assert content(tmp_path) == before


@pytest.mark.slow
def test_a_summariser_and_a_model_of_many_languages_have_students(tmp_path: Path) -> None:
    recipe = toys.digests(tmp_path / "digests")
    assert weft("train", recipe, "--run", tmp_path / "a", "training.max_epochs=1").code == 0
    weft("distill", tmp_path / "a", "--student", recipe, "--run", tmp_path / "b", *SHORT, code=0)
    lines = (tmp_path / "b.corpus" / "train.summary").read_text().splitlines()
    assert len(lines) == 200 and "teacher" in (tmp_path / "b" / "README.md").read_text()

    many = toys.many(tmp_path / "many")
    small = [*SHORT, "model.encoder={use: recurrent, cell: gru, sizes: [8]}"]
    small += ["model.decoder={use: recurrent, cell: gru, sizes: [8]}"]
    assert weft("train", many, "--run", tmp_path / "c", *small).code == 0
    command = ["distill", tmp_path / "c", "--student", many, "--run", tmp_path / "d", *small]
    texts = ["--sources", tmp_path / "many" / "many.yaml"]
    assert "expected a student of one direction" in refused(weft(*command, *texts))
    weft(*command, "data.pairs=[aa-bb, cc-aa]", "data.zero_shot=[cc-bb]", code=0)
    asked = ["--source", "cc", "--target", "aa"]
    written = tmp_path / "d.corpus" / "cc-aa"
    assert weft("predict", tmp_path / "c", written / "train.cc", *asked).lines == (
        (written / "train.aa").read_text("utf-8").splitlines()
    )
    assert sorted(path.name for path in (tmp_path / "d.corpus" / "cc-bb").iterdir()) == [
        "valid.bb",
        "valid.cc",
    ]
    assert json.loads((tmp_path / "d" / "teacher.json").read_text())["run"] == str(tmp_path / "c")


@pytest.mark.slow
def test_several_teachers_write_as_one(toy: Path, tmp_path: Path) -> None:
    run, cycles = tmp_path / "many", "training.schedule={use: cosine_restarts, cycles: 2}"
    weft("train", toy, "--run", run, "training.max_updates=40", "training.validate_every=100", cycles, code=0)
    alone = weft("distill", run, "--student", toy, "--run", tmp_path / "small", "--ensemble", run)
    assert "would count twice" in refused(alone) and not (tmp_path / "small.corpus").exists()
    together = ("--ensemble", run / "cycles", "--beam", 2)
    weft("distill", run, "--student", toy, "--run", tmp_path / "small", *together, *SHORT, code=0)
    read, said = sides(tmp_path / "small.corpus", "train")
    assert said == weft("predict", run, *together, stdin="\n".join(read).encode()).lines
    assert f"in an ensemble with {run / 'cycles'}" in (tmp_path / "small" / "README.md").read_text()
