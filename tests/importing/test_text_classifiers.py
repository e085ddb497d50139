"""BERT, RoBERTa and DistilBERT with a classifier's head become runs of the task classify.

Skipped with a message if the library is missing: pip install --group import-tests -c constraints.txt
"""

import json
from pathlib import Path
from typing import Any

import pytest
import torch

pytest.importorskip("transformers", reason="pip install --group import-tests")

from tests.commands.exporting import exported, run_program
from tests.commands.shell import refused, weft
from tests.importing.masked_models import SPELLING, sentences, write_checkpoint
from tests.importing.random_models import transformers
from tests.importing.started import UNCHANGED, imported_run, trains_on
from tests.laws.members import close
from weft import masks
from weft.importing.families import import_model
from weft.models import Labeller
from weft.run import open_run

CLASSES = ["negative", "neutral", "very_good"]
NAMES = {"id2label": dict(enumerate(CLASSES)), "label2id": {name: n for n, name in enumerate(CLASSES)}}
TEXTS = ["Click the button.", "Ünicode (and more)", "x", "  the   file is open 中"]


@pytest.fixture(scope="module", params=[name for name in SPELLING if name != "modernbert"])
def imported(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The library's model, its tokenizer, and the folder of the imported run."""
    there = tmp_path_factory.mktemp("run")
    theirs = write_checkpoint(request.param, there / "checkpoint", "SequenceClassification", **NAMES)
    lines = [f"__label__{CLASSES[n % 3]} {text}" for n, text in enumerate(sentences("valid"))]
    assert "for the task classify" in imported_run(there, lines[:30], lines[30:41]).out
    file = there / "checkpoint" / "tokenizer.json"
    return theirs, transformers.PreTrainedTokenizerFast(tokenizer_file=str(file)), there


@torch.no_grad()
def test_the_model_gives_the_same_probabilities(imported: Any) -> None:
    theirs, _, there = imported
    ours = import_model(there / "checkpoint")
    assert isinstance(ours, Labeller)
    generator, lengths = torch.Generator().manual_seed(1), torch.tensor([11, 1, 7, 4])
    text = torch.randint(5, 311, (4, 11), generator=generator)
    mask = masks.from_lengths(lengths, 11)
    text = torch.where(mask, text, theirs.config.pad_token_id)
    want = theirs(text, attention_mask=mask.long()).logits.log_softmax(-1)
    close(ours(text, mask)[:, 0], want, 1e-5)


@torch.no_grad()
def test_the_run_reads_and_answers_like_the_library(imported: Any) -> None:
    theirs, made, there = imported
    reader = open_run(there / "run", device="cpu").pipeline.reader
    said = weft(
        "predict", there / "run", "--scores", stdin="".join(f"{text}\n" for text in TEXTS).encode(), code=0
    )
    for text, line in zip(TEXTS, said.lines, strict=True):
        ids = made(text, truncation=False, padding=False).input_ids
        assert [reader.vocabulary.order[number] for number in reader.vocabulary.encode(text)] == ids
        probs = theirs(torch.tensor([ids])).logits.softmax(-1)[0].tolist()
        label, *scores = line.split("\t")
        assert label == CLASSES[probs.index(max(probs))]
        found = dict(one.rsplit("=", 1) for one in scores)
        assert [float(found[name]) for name in CLASSES] == pytest.approx(probs, abs=6e-5)


def test_it_is_trained_further_with_its_own_classes(imported: Any) -> None:
    _, _, there = imported
    trains_on(there / "run", there / "tuned")
    (there / "train.txt").write_text("__label__other a text\n__label__neutral b\n", "utf-8")
    start = (*UNCHANGED, f"training.start={there / 'run'}")
    said = refused(weft("train", there / "run" / "recipe.yaml", *start, "--run", there / "other"))
    assert "expected the classes that the model has (negative, neutral, very_good), got 'other'" in said


def test_as_onnx_it_answers_as_predict_does(imported: Any) -> None:
    pytest.importorskip("onnxscript", reason="pip install -e .[export]")
    _, _, there = imported
    exported(there / "run", there / "onnx")
    text = "".join(f"{text}\n" for text in TEXTS)
    ours = weft("predict", there / "run", "--scores", stdin=text.encode()).lines
    assert run_program(there / "onnx", text, "--scores") == ours


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"problem_type": "multi_label_classification"}, "problem_type"),
        ({"problem_type": "regression"}, "problem_type"),
        ({"id2label": {"0": "a", "1": "a", "2": "b"}}, "id2label"),
        ({"architectures": ["BertForTokenClassification"]}, "BertForSequenceClassification"),
        ({"architectures": ["BertForMaskedLM"]}, "tensors are"),
    ],
)
def test_other_heads_are_refused(change: dict[str, Any], word: str, tmp_path: Path) -> None:
    write_checkpoint("bert", tmp_path / "checkpoint", "SequenceClassification", **NAMES)
    file = tmp_path / "checkpoint" / "config.json"
    file.write_text(json.dumps(json.loads(file.read_text("utf-8")) | change), "utf-8")
    said = refused(weft("import", tmp_path / "checkpoint", "--run", tmp_path / "run"))
    assert word in said and "checkpoint" in said and not (tmp_path / "run").exists()
