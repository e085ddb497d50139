"""weft backtranslate: texts become pairs, and nothing is written twice after a stop."""

import shlex
from pathlib import Path
from typing import Any

import pytest

from tests import toys
from tests.commands.shell import content, refused, stops, untouched, weft
from weft.commands import bulk
from weft.config import read_recipe
from weft.store.run_directory import lock

TEXTS = ["alpha beta", "gamma", "iota theta eta zeta", "delta delta", "beta"] * 3


def sides(folder: Path) -> list[tuple[str, str]]:
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
    assert sides(tmp_path / "out") == [(f"<bt> {one}", text) for one, text in zip(said, TEXTS, strict=True)]
    assert "15 of 15 pairs kept (100.0 %)" in made.out
    assert f"`{trained}`" in (tmp_path / "out" / "README.md").read_text()
    plain = weft("backtranslate", trained, mono, "--folder", tmp_path / "out", "--beam", 2, "--tag", "")
    assert plain.code == 0 and "lines answered" not in plain.err
    assert sides(tmp_path / "out") == list(zip(said, TEXTS, strict=True))


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
    assert [text for _, text in sides(tmp_path / "out")] == kept and len(kept) < 15
    assert f"left out: {15 - len(kept)} with a score below {least:g}" in made.out
    made = weft(*command, "--keep", 0.4)
    assert len(sides(tmp_path / "out")) == 6
    assert "left out: 9 not among the best 40 %" in made.out
    said = refused(weft(*command, "--min-score", 1))
    assert "no pairs are left (15 with a score below 1)" in said
    assert len(sides(tmp_path / "out")) == 6  # as before


@pytest.mark.slow
def test_garbage_becomes_no_pair(trained: Path, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes(
        b"alpha\n\n\xff\xfe\n beta \t\xe2\x80\xa8 gamma \n" + b"zyx " * 3000 + b"\n"
    )
    (tmp_path / "b.txt").write_bytes(b"iota")
    out = tmp_path / "out"
    made = weft("backtranslate", trained, tmp_path / "a.txt", tmp_path / "b.txt", "--folder", out, code=0)
    assert "4 lines to translate, 1 empty, 1 not UTF-8" in made.err
    texts = [text for _, text in sides(out)]
    assert texts[:2] == ["alpha", "beta gamma"] and texts[-1] == "iota"
    assert len((out / "texts.xx").read_text().splitlines()) == 4
    (tmp_path / "empty.txt").write_bytes(b"\n \n")
    said = refused(weft("backtranslate", trained, tmp_path / "empty.txt", "--folder", tmp_path / "none"))
    assert (
        "empty.txt: expected at least one line with text, 2 empty" in said
        and not (tmp_path / "none").exists()
    )
    (tmp_path / "empty.txt").write_text("iota\n")  # corrected: the folder is no obstacle
    assert weft("backtranslate", trained, tmp_path / "empty.txt", "--folder", tmp_path / "none").code == 0
    (tmp_path / "binary").write_bytes(b"\0\1\2")
    for name in ("missing.txt", tmp_path, tmp_path / "binary"):
        assert str(name) in refused(weft("backtranslate", trained, name, "--folder", tmp_path / "new"))
    assert not (tmp_path / "new").exists()
    (tmp_path / "none" / "back.json").write_text("{")
    said = refused(weft("backtranslate", trained, tmp_path / "empty.txt", "--folder", tmp_path / "none"))
    assert "back.json" in said


STAGES = {
    "before the texts are copied": ("weft.commands.backtranslate.each_line", 0),
    "before the first chunk": ("weft.commands.bulk.answer", 0),
    "between chunks": ("weft.commands.bulk.write", 2),
    "before the chunks are joined": ("weft.commands.bulk.join", 0),
    "before the pairs are judged": ("weft.data.synthetic.judged", 0),
    "before the pairs are written": ("weft.data.synthetic.pairs", 0),
}


@pytest.mark.slow
@pytest.mark.parametrize("how", [["--beam", 2], ["--sample", "--seed", 3]])
def test_stopped_anywhere_it_resumes_and_ends_the_same(
    trained: Path, mono: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: list[Any]
) -> None:
    monkeypatch.setattr(bulk, "CHUNK", 4)  # four chunks, the last one ragged
    command = ["backtranslate", trained, mono, *how, "--keep", 0.7, "--folder"]
    assert weft(*command, tmp_path / "whole").code == 0
    chunks: list[int] = []
    real = bulk.answer
    monkeypatch.setattr(bulk, "answer", lambda *given: chunks.append(given[1].number) or real(*given))
    for name, (place, calls) in STAGES.items():
        with monkeypatch.context() as patch:
            patch.setattr(place, stops(place, calls))
            assert weft(*command, tmp_path / "out").code == 130, name
    assert weft(*command, tmp_path / "out").code == 0
    assert chunks == [0, 1, 2, 2, 3]  # the one that was not written is answered again
    assert {k: v for k, v in content(tmp_path / "out").items() if k != "README.md"} == {
        k: v for k, v in content(tmp_path / "whole").items() if k != "README.md"
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
