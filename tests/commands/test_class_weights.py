"""Class weights: balanced ones find a rare class or tag, a user may give others, wrong ones are refused."""

import re
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from tests.commands import labelled
from tests.commands.shell import refused, untouched, weft

SHORT = "training.max_updates=12", "training.metric=loss"


@pytest.fixture
def texts(tmp_path: Path) -> Path:
    """A recipe for 201 good texts and 7 bad ones."""
    recipe = labelled.make_texts(tmp_path / "toy")
    rows = [(label, text) for label, text in labelled.texts(401, 1)]
    rare = [row for row in rows if row[0] == "bad"][:7]
    lines = [f"__label__{label} {text}\n" for label, text in [row for row in rows if row[0] == "good"] + rare]
    (tmp_path / "toy" / "train.txt").write_text("".join(lines))
    return recipe


@pytest.fixture
def sentences(tmp_path: Path) -> Path:
    """A recipe for sentences in which nearly every word in -ing is tagged as a noun, and 7 as verbs."""
    recipe = labelled.make_sentences(tmp_path / "toy")
    recipe.write_text(recipe.read_text().replace("crf: true", "crf: false"))
    train = tmp_path / "toy" / "train.conllu"
    before, *verbs = train.read_text().split("\tVERB\t")
    tags = ["VERB" if n % (len(verbs) // 7) == 0 else "NOUN" for n in range(len(verbs))]
    train.write_text(before + "".join(f"\t{tag}\t{rest}" for tag, rest in zip(tags, verbs, strict=True)))
    return recipe


@pytest.mark.parametrize("kind", ["texts", "sentences"])
def test_balanced_weights_find_a_rare_class(
    kind: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    recipe, found = request.getfixturevalue(kind), {}
    for weights in ("none", "balanced"):
        run = tmp_path / weights
        weft("train", recipe, "--run", run, f"model.class_weights={weights}", *SHORT, code=0)
        if kind == "texts":
            bad = "".join(f"{text}\n" for label, text in labelled.texts(97, 9) if label == "bad")
            found[weights] = weft("predict", run, stdin=bad.encode()).lines.count("bad")
        else:
            found[weights] = weft("predict", run, stdin=b"beding moling .\n" * 9).out.count("\tVERB\n")
    assert found["balanced"] > found["none"] and (kind == "texts" or found["none"] == 0)


def test_own_weights_equal_to_the_balanced_ones_train_the_same_model(texts: Path, tmp_path: Path) -> None:
    lines = (tmp_path / "toy" / "train.txt").read_text().splitlines()
    rows = [line.split()[0].removeprefix("__label__") for line in lines]
    own = ", ".join(f"{name}: {len(rows) / (2 * rows.count(name))!r}" for name in ("good", "bad"))
    for name, weights in {"own": f"{{{own}}}", "balanced": "balanced", "some": "{bad: 3}"}.items():
        weft("train", texts, "--run", tmp_path / name, f"model.class_weights={weights}", *SHORT, code=0)
    own_model, balanced, some = (
        load_file(tmp_path / name / "model.safetensors") for name in ("own", "balanced", "some")
    )
    assert all(bool((own_model[name] == balanced[name]).all()) for name in balanced)
    assert any(bool((some[name] != balanced[name]).any()) for name in balanced)
    assert weft("evaluate", tmp_path / "some").code == 0  # its recipe is read again


def test_the_validation_texts_choose_between_none_and_balanced(texts: Path, tmp_path: Path) -> None:
    solved, losses, models = ("model.bag={solve: true}", "training.metric=loss"), {}, {}
    for weights in ("none", "balanced", "best"):
        run = tmp_path / weights
        said = weft("train", texts, "--run", run, f"model.class_weights={weights}", *solved, code=0).err
        losses[weights] = float(re.findall(r"validation after update 0: loss ([\d.]+)", said)[0])
        models[weights] = load_file(run / "model.safetensors")
    chosen = min(("none", "balanced"), key=losses.__getitem__)
    assert losses["none"] != losses["balanced"]
    assert all(torch.equal(one, models[chosen][name]) for name, one in models["best"].items())
    assert f"class_weights: {chosen}, the better one" in said


def test_wrong_weights_are_refused(texts: Path, tmp_path: Path) -> None:
    def said(weights: str) -> str:
        return refused(weft("train", texts, "--run", tmp_path / "run", f"model.class_weights={weights}"))

    assert "got 'balancd'" in said("balancd")
    assert "best requires bag.solve: true; set none or balanced" in said("best")
    assert "model.class_weights.bad: expected a number, got 'much'" in said("{bad: much}")
    assert "expected a number above 0 for 'bad', got 0" in said("{bad: 0}")
    assert "expected classes of the training data, got 'bda'; did you mean 'bad'?" in said("{bda: 2}")
    assert "got 'x'; they are bad, good" in said("{x: 2}")


def test_a_crf_has_no_class_weights_and_an_unknown_tag_is_refused(sentences: Path, tmp_path: Path) -> None:
    words = "train", sentences, "--run", tmp_path / "run"
    act = lambda: weft(*words, "model.crf=true", "model.class_weights=balanced")  # noqa: E731
    assert "with a CRF, which scores the tags of a sentence together; set crf: false" in untouched(
        tmp_path, act
    )
    answer = refused(weft(*words, "model.class_weights={VERBS: 2}"))
    assert "got 'VERBS'; did you mean 'VERB'?" in answer
