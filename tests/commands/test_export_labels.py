"""Taggers and classifiers as ONNX: the program answers as `weft predict` does."""

from pathlib import Path

import pytest

pytest.importorskip("onnxscript", reason="pip install -e .[export]")

from tests.commands import labelled
from tests.commands import test_several_labels as several_labels
from tests.commands.exporting import answers, exported, run_program
from tests.commands.shell import weft
from tests.shared import quick_first, shared_run

ODD = ["", "a great film", "  it   was awful", "zzz qqq", "A GREAT film .", "é\u0301 ﬁ\u00a0x", "film " * 40]


def trained(recipe: Path, run: Path, old: str = "", new: str = "", *changes: str) -> Path:
    text = recipe.read_text()
    assert old in text
    recipe.write_text(text.replace(old, new))
    weft("train", recipe, "--run", run, "training.max_updates=30", *changes, code=0)
    return run


ENCODER = "encoder: {use: recurrent, cell: gru, sizes: [7], bidirectional: true}"


CLASSIFIERS = {
    "gru": ("", ""),
    "letters": (
        "dropout: 0.0\ntraining",
        "dropout: 0.0\n  bag: {ngrams: 1, edges: true, letters: [2, 4], weight: tfidf}\ntraining",
    ),
    "bayes": ("dropout: 0.0\ntraining", "dropout: 0.0\n  bag: {ngrams: 2, naive_bayes: true}\ntraining"),
    "frequency": ("dropout: 0.0\ntraining", "dropout: 0.0\n  bag: {ngrams: 3, weight: frequency}\ntraining"),
    "transformer": (ENCODER, "encoder: {use: transformer, size: 12, num_layers: 1, num_heads: 2}"),
    "filters": (ENCODER, "encoder: {use: filters}"),
}


@pytest.mark.slow
@pytest.mark.parametrize("changes", quick_first(CLASSIFIERS))
def test_a_classifier(changes: tuple[str, str], tmp_path: Path) -> None:
    plain = changes == CLASSIFIERS["gru"]
    recipe = labelled.make_texts(tmp_path / "toy")
    run = shared_run("classify") if plain else trained(recipe, tmp_path / "run", *changes)
    exported(run, tmp_path / "out")
    texts = [*ODD[1:], *(text for _, text in labelled.texts(60, 7))]
    given = "".join(f"{text}\n" for text in texts)
    found = run_program(tmp_path / "out", given, "--scores")
    assert found == weft("predict", run, "--scores", stdin=given.encode()).lines
    assert run_program(tmp_path / "out", given) == [line.split("\t")[0] for line in found]
    other = answers(tmp_path / "out", "a great film\n", "--beam", "2", without=())
    assert other.returncode == 2 and other.stdout == ""
    assert other.stderr.endswith("error: --beam: a model of this kind has no such option\n")
    empty = answers(tmp_path / "out", " \na great film\n", without=())
    assert empty.returncode == 3 and empty.stdout.startswith("\n") and len(empty.stdout.splitlines()) == 2
    assert empty.stderr == "line 1: the text is empty; write one\n"


@pytest.mark.slow
@pytest.mark.parametrize("old", ["", "dropout: 0.0\ntraining"], ids=["gru", "bag"])
def test_a_classifier_with_several_labels(old: str, tmp_path: Path) -> None:
    new = "dropout: 0.0\n  bag: {ngrams: 1, weight: tfidf}\ntraining" if old else ""
    changes = [*several_labels.CHANGES, f"data.folder={tmp_path / 'toy'}"]
    run = trained(several_labels.make(tmp_path / "toy"), tmp_path / "run", old, new, *changes)
    texts = "".join(f"{text}\n" for text in [*ODD[1:], *(text for _, text in labelled.topics(60, 7))])
    seen = set()
    for calibrated in (False, True):
        if calibrated:
            assert weft("evaluate", run, "--split", "valid", "--calibrate").code == 0
        exported(run, tmp_path / f"out{calibrated}")
        found = run_program(tmp_path / f"out{calibrated}", texts, "--scores")
        assert found == weft("predict", run, "--scores", stdin=texts.encode()).lines
        assert run_program(tmp_path / f"out{calibrated}", texts) == [line.split("\t")[0] for line in found]
        seen |= {line.split("\t")[0] for line in found}
    assert len(seen) > 3


@pytest.mark.slow
def test_a_calibrated_classifier(tmp_path: Path) -> None:
    run = trained(labelled.make_texts(tmp_path / "toy"), tmp_path / "run")
    given = "".join(f"{text}\n" for text in ODD[1:])
    before = weft("predict", run, "--scores", stdin=given.encode()).lines
    assert weft("evaluate", run, "--split", "valid", "--calibrate").code == 0
    exported(run, tmp_path / "out")
    after = weft("predict", run, "--scores", stdin=given.encode()).lines
    assert run_program(tmp_path / "out", given, "--scores") == after != before


TAGGERS = {
    "crf": ("", ""),
    "each": ("crf: true", "crf: false"),
    "letters": ("spelled: 8", "spelled: 8, characters: recurrent"),
}


@pytest.mark.parametrize("changes", quick_first(TAGGERS, 0))
def test_a_tagger(changes: tuple[str, str], tmp_path: Path) -> None:
    recipe = labelled.make_sentences(tmp_path / "toy")
    run = shared_run("tag") if changes == TAGGERS["crf"] else trained(recipe, tmp_path / "run", *changes)
    exported(run, tmp_path / "out")
    lines = ["telo beding .", "x y", "ab" * 40 + " Ünknown", "é\u0301 ﬁ ing"]
    given = "".join(f"{line}\n" for line in lines)
    ours = weft("predict", run, stdin=given.encode())
    assert ours.code == 0 and run_program(tmp_path / "out", given) == ours.out.removesuffix("\n").split("\n")
