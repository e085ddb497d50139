"""weft distill and backtranslate: a model learns what another writes; nothing is written twice."""

import json
import shlex
from pathlib import Path
from typing import Any

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
    assert teacher is not None
    assert teacher.run == str(blind)
    assert teacher.weights == file_digest(blind / "model.safetensors")
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


def stopped_everywhere(
    stages: dict[str, tuple[str, int]], command: list[Any], monkeypatch: pytest.MonkeyPatch
) -> list[int]:
    """Stop a command at each stage, then let it end; the chunks that were answered, in order."""
    chunks: list[int] = []
    real = bulk.answer
    monkeypatch.setattr(bulk, "answer", lambda *given: chunks.append(given[1].number) or real(*given))
    for name, (place, calls) in stages.items():
        with monkeypatch.context() as patch:
            patch.setattr(place, stops(place, calls))
            assert weft(*command).code == 130, name
    assert weft(*command).code == 0
    return chunks


@pytest.mark.slow
def test_stopped_anywhere_it_resumes_and_ends_the_same(
    blind: Path, toy: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bulk, "CHUNK", 101)  # four chunks, the last one ragged
    command = ["distill", blind, "--student", toy, "--run", "run", "--beam", 1, *SHORT]
    whole = tmp_path / "whole"
    whole.mkdir()
    monkeypatch.chdir(whole)
    assert weft(*command).code == 0
    monkeypatch.chdir(tmp_path)
    chunks = stopped_everywhere(STAGES, command, monkeypatch)
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


TEXTS = ["alpha beta", "gamma", "iota theta eta zeta", "delta delta", "beta"] * 3


def pairs_of(folder: Path) -> list[tuple[str, str]]:
    """The pairs: what the model wrote in yy, and the text in xx."""
    written, texts = ((folder / f"back.{end}").read_text("utf-8").splitlines() for end in ("yy", "xx"))
    return list(zip(written, texts, strict=True))


@pytest.fixture
def mono(tmp_path: Path) -> Path:
    (tmp_path / "mono.xx").write_text("".join(f"{text}\n" for text in TEXTS))
    return tmp_path / "mono.xx"


def test_the_model_writes_a_source_for_each_text(trained: Path, mono: Path, tmp_path: Path) -> None:
    made = weft("backtranslate", trained, mono, "--folder", tmp_path / "out", "--beam", 2, code=0)
    said = weft("predict", trained, mono, "--beam", 2).lines
    assert pairs_of(tmp_path / "out") == [
        (f"<bt> {one}", text) for one, text in zip(said, TEXTS, strict=True)
    ]
    assert "15 of 15 pairs kept (100.0 %)" in made.out
    assert f"`{trained}`" in (tmp_path / "out" / "README.md").read_text()
    plain = weft("backtranslate", trained, mono, "--folder", tmp_path / "out", "--beam", 2, "--tag", "")
    assert plain.code == 0 and "lines answered" not in plain.err
    assert pairs_of(tmp_path / "out") == list(zip(said, TEXTS, strict=True))


def test_the_printed_lines_train_the_forward_model(
    trained: Path, toy: Path, mono: Path, tmp_path: Path
) -> None:
    made = weft("backtranslate", trained, mono, "--folder", tmp_path / "out of it")
    words = shlex.split(made.out.splitlines()[-1])
    assert words[:-1] == ["or", "to", "its", "command:"]
    change = words[-1]
    swapped = ["data.source=yy", "data.target=xx", "training.max_updates=2", "training.validate_every=2"]
    run = weft("train", toy, "--run", tmp_path / "forward", *swapped, change, code=0)
    assert "15 (3.6 %) of" in run.err and f"{tmp_path / 'out of it' / 'back'}, 1.00 times all" in run.err
    assert "<" in (tmp_path / "forward" / "tokenizer.source.json").read_text()
    lines = made.out[made.out.index("data:\n") :].split("\n\n")[0]
    (tmp_path / "lines.yaml").write_text(lines)
    assert read_recipe(tmp_path / "lines.yaml").plain()["data"]["mixed"] == {
        str(tmp_path / "out of it" / "back"): 1.0
    }


def test_improbable_pairs_are_left_out(trained: Path, mono: Path, tmp_path: Path) -> None:
    command = ["backtranslate", trained, mono, "--folder", tmp_path / "out"]
    scores = [float(line.split("\t")[0]) for line in weft("predict", trained, mono, "--scores").lines]
    least = sorted(scores)[7] - 1e-6
    made = weft(*command, "--min-score", least)
    kept = [text for text, score in zip(TEXTS, scores, strict=True) if score >= least]
    assert [text for _, text in pairs_of(tmp_path / "out")] == kept and len(kept) < 15
    assert f"left out: {15 - len(kept)} with a score below {least:g}" in made.out
    made = weft(*command, "--keep", 0.4)
    assert len(pairs_of(tmp_path / "out")) == 6
    assert "left out: 9 not among the best 40 %" in made.out
    said = refused(weft(*command, "--min-score", 1))
    assert "no pairs are left (15 with a score below 1)" in said
    assert len(pairs_of(tmp_path / "out")) == 6  # as before


@pytest.mark.slow
def test_garbage_becomes_no_pair(trained: Path, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes(
        b"alpha\n\n\xff\xfe\n beta \t\xe2\x80\xa8 gamma \n" + b"zyx " * 3000 + b"\n"
    )
    (tmp_path / "b.txt").write_bytes(b"iota")
    out = tmp_path / "out"
    made = weft("backtranslate", trained, tmp_path / "a.txt", tmp_path / "b.txt", "--folder", out, code=0)
    assert "4 lines to translate, 1 empty, 1 not UTF-8" in made.err
    texts = [text for _, text in pairs_of(out)]
    assert texts[:2] == ["alpha", "beta gamma"] and texts[-1] == "iota"
    assert len((out / "texts.xx").read_text().splitlines()) == 4
    (tmp_path / "empty.txt").write_bytes(b"\n \n")
    said = refused(weft("backtranslate", trained, tmp_path / "empty.txt", "--folder", tmp_path / "none"))
    assert "empty.txt: expected at least one line with text, 2 empty" in said
    assert not (tmp_path / "none").exists()
    (tmp_path / "empty.txt").write_text("iota\n")  # corrected: the folder is no obstacle
    assert weft("backtranslate", trained, tmp_path / "empty.txt", "--folder", tmp_path / "none").code == 0
    (tmp_path / "binary").write_bytes(b"\0\1\2")
    for name in ("missing.txt", tmp_path, tmp_path / "binary"):
        assert str(name) in refused(weft("backtranslate", trained, name, "--folder", tmp_path / "new"))
    assert not (tmp_path / "new").exists()
    (tmp_path / "none" / "back.json").write_text("{")
    said = refused(weft("backtranslate", trained, tmp_path / "empty.txt", "--folder", tmp_path / "none"))
    assert "back.json" in said


BACK_STAGES = {
    "before the texts are copied": ("weft.commands.backtranslate.each_line", 0),
    "before the first chunk": ("weft.commands.bulk.answer", 0),
    "between chunks": ("weft.commands.bulk.write", 2),
    "before the chunks are joined": ("weft.commands.bulk.join", 0),
    "before the pairs are judged": ("weft.data.synthetic.judged", 0),
    "before the pairs are written": ("weft.data.synthetic.pairs", 0),
}


@pytest.mark.slow
@pytest.mark.parametrize("how", [["--beam", 2], ["--sample", "--seed", 3]])
def test_a_backtranslation_stopped_anywhere_resumes_and_ends_the_same(
    trained: Path, mono: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: list[Any]
) -> None:
    monkeypatch.setattr(bulk, "CHUNK", 4)  # four chunks, the last one ragged
    command = ["backtranslate", trained, mono, *how, "--keep", 0.7, "--folder"]
    assert weft(*command, tmp_path / "whole").code == 0
    chunks = stopped_everywhere(BACK_STAGES, [*command, tmp_path / "out"], monkeypatch)
    assert chunks == [0, 1, 2, 2, 3]  # the one that was not written is answered again
    whole, out = (content(tmp_path / name) for name in ("whole", "out"))
    assert {k: v for k, v in out.items() if k != "README.md"} == {
        k: v for k, v in whole.items() if k != "README.md"
    }


def test_pairs_belong_to_one_model_with_its_settings_and_texts(
    trained: Path, mono: Path, tmp_path: Path
) -> None:
    command = ["backtranslate", trained, mono, "--folder", tmp_path / "out"]
    assert weft(*command, "--sample", "--seed", 3).code == 0
    out = tmp_path / "out"
    said = untouched(out, lambda: weft(*command, "--sample", "--seed", 4))
    assert f"options changed since its pairs were made; remove {out}, or choose another --folder" in said
    assert "decoding, options changed" in untouched(out, lambda: weft(*command, "--beam", 2))
    mono.write_text("alpha\n")
    assert "texts changed" in untouched(out, lambda: weft(*command, "--sample", "--seed", 3))
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "letter.txt").write_text("mine")
    said = untouched(tmp_path / "mine", lambda: weft(*command[:-1], tmp_path / "mine"))
    assert "is not empty and has no translated pairs" in said


def test_a_model_of_the_other_direction_does_not_take_over_its_translations(
    trained: Path, toy: Path, mono: Path, tmp_path: Path
) -> None:
    made = ("--folder", tmp_path / "out", "--beam", 1)
    assert weft("backtranslate", trained, mono, *made).code == 0
    before = content(tmp_path / "out")
    swapped = ["data.source=yy", "data.target=xx", "training.max_updates=2", "training.validate_every=2"]
    assert weft("train", toy, "--run", tmp_path / "other", *swapped).code == 0
    said = refused(weft("backtranslate", tmp_path / "other", mono, *made))
    assert "model, weights changed since its pairs were made" in said
    assert content(tmp_path / "out") == before


def test_what_cannot_translate_back_is_refused(trained: Path, mono: Path, tmp_path: Path) -> None:
    out = ["--folder", tmp_path / "out"]
    with lock(trained):
        assert "is still being trained" in refused(weft("backtranslate", trained, mono, *out))
    said = refused(weft("backtranslate", trained, mono, *out, "--target", "yy"))
    assert "has one direction (xx to yy); leave them out" in said
    assert "would count twice" in refused(weft("backtranslate", trained, mono, *out, "--ensemble", trained))
    recipe = toys.digests(tmp_path / "digests")
    assert weft("train", recipe, "--run", tmp_path / "a", "training.max_updates=1").code == 0
    said = refused(weft("backtranslate", tmp_path / "a", mono, *out))
    assert "expected a run that translates, got the task summarise" in said
    assert not (tmp_path / "out").exists()


def test_a_model_of_many_languages_is_told_the_direction(tmp_path: Path) -> None:
    many = toys.many(tmp_path / "many")
    small = ["model.encoder={use: recurrent, cell: gru, sizes: [8]}", "training.max_updates=2"]
    small += ["model.decoder={use: recurrent, cell: gru, sizes: [8]}", "training.validate_every=2"]
    assert weft("train", many, "--run", tmp_path / "run", *small).code == 0
    (tmp_path / "mono").write_text("one two\nthree\n")
    command = ["backtranslate", tmp_path / "run", tmp_path / "mono", "--folder", tmp_path / "out"]
    assert "choose one with --source and --target" in refused(weft(*command))
    weft(*command, "--source", "aa", "--target", "bb", "--max-ratio", 1000, code=0)
    assert sorted(path.name for path in (tmp_path / "out").iterdir() if path.name[0] != ".") == [
        "README.md", "back.aa", "back.bb", "back.json", "scored.txt", "texts.aa",
    ]  # fmt: skip
