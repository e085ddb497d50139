"""Encoders of transformers become runs of the task masked, which fill gaps like the library's models.

Skipped with a message if the library is missing: pip install --group import-tests -c constraints.txt
"""

from pathlib import Path
from typing import Any

import pytest
import torch
from tokenizers import (
    Tokenizer,
    models,
)

from weft.tasks.masked.task import GapSettings

pytest.importorskip("transformers", reason="pip install --group import-tests")

from tests.importing.masked_models import SPELLING, sentences, write_checkpoint
from tests.importing.random_models import transformers
from tests.laws.members import close
from weft import cli
from weft.run import open_run
from weft.tasks.predictor import Place

TEXTS = ["The [MASK] is open", "[MASK] the button.", "Ünicode [MASK] and [MASK]", "a ([MASK])"]

WORDS = [("Click", "V"), ("the", "D"), ("button", "N"), (".", "P"), ("", "")]


def weft(*arguments: object) -> int:
    with pytest.raises(SystemExit) as leave:
        cli.main([str(one) for one in arguments])
    return int(leave.value.code or 0)


@pytest.fixture(scope="module", params=SPELLING)
def imported(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The library's model, its tokenizer, its mask, and the folder of the imported run."""
    there = tmp_path_factory.mktemp("run")
    mask = SPELLING[request.param][1]
    theirs = write_checkpoint(request.param, there / "checkpoint")
    file = there / "checkpoint" / "tokenizer.json"
    for split, count in (("train", 30), ("valid", 7)):
        (there / f"{split}.txt").write_text("\n".join(sentences("valid")[:count]) + "\n", "utf-8")
    texts = ["--train", there / "train.txt", "--valid", there / "valid.txt"]
    assert weft("import", there / "checkpoint", "--run", there / "run", *texts) == 0
    return theirs, transformers.PreTrainedTokenizerFast(tokenizer_file=str(file)), mask, there


@torch.no_grad()
def test_a_gap_is_filled_like_by_the_library(imported: Any) -> None:
    theirs, made, mask, there = imported
    opened = open_run(there / "run", device="cpu")
    filler = opened.pipeline.predictor(opened.model)
    order = torch.tensor([*filler.vocabulary.order, made.convert_tokens_to_ids(mask)])
    assert sorted(order.tolist()) == list(range(317))
    for text in TEXTS:
        ids = made(text.replace("[MASK]", mask)).input_ids
        tokens = filler.tokens(text)
        assert order[tokens].tolist() == ids
        want = theirs(torch.tensor([ids])).logits.log_softmax(-1)
        row = torch.tensor([tokens])
        got = opened.model(row, torch.ones_like(row, dtype=torch.bool))
        close(got, want[:, :, order], 1e-5)
        places = [place for place, number in enumerate(tokens) if number == len(filler.vocabulary)]
        prob = want[0, places].exp()
        prob[:, order[[0, 1, 2, 3, -1]]] = 0  # special symbols fill no gap
        assert [gap[0][1] for gap in filler.fill(text).gaps] == pytest.approx(prob.amax(1).tolist(), rel=1e-4)


def test_a_run_predicts_and_trains_on(imported: Any, capsys: pytest.CaptureFixture[str]) -> None:
    *_, there = imported
    (there / "texts").write_text("\n".join(TEXTS) + "\n", "utf-8")
    capsys.readouterr()
    assert weft("predict", there / "run", there / "texts") == 0
    written = capsys.readouterr().out
    assert written.count("\n") == len(TEXTS) and "MASK" not in written
    assert weft("evaluate", there / "run", "--data", there / "valid.txt") == 0
    assert "perplexity" in capsys.readouterr().out
    changes = ["training.max_updates=2", "training.device=cpu", "training.workers=1"]
    changes += [f"training.start={there / 'run'}", "training.optimiser={use: adamw, lr: 1.0e-9}"]
    assert weft("train", there / "run" / "recipe.yaml", *changes, "--run", there / "tuned") == 0
    before, after = (open_run(there / name, device="cpu").model.state_dict() for name in ("run", "tuned"))
    for name, tensor in before.items():
        close(after[name], tensor, 1e-6)


def test_a_run_fills_gaps_without_weft(
    imported: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("onnxscript", reason="pip install -e .[export]")
    from weft.export.formats.onnx import program

    *_, there = imported
    assert weft("export", there / "run", "--to", "onnx", "--output", tmp_path / "out") == 0
    assert "answers equal to Weft's: 7 of 7" in capsys.readouterr().out
    model, opened = program(tmp_path / "out"), open_run(there / "run", device="cpu")
    for options in ({}, {"nbest": 3, "scores": True}):
        filler = opened.pipeline.predictor(opened.model, GapSettings(**options))
        parsed = [filler.parse(text, Place("input")) for text in TEXTS]
        assert [model(text, **options) for text in TEXTS] == [one.text() for one in filler.answers(parsed)]


def test_a_tokenizer_without_a_mask_is_refused(
    imported: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    *_, there = imported
    for name in ("config.json", "model.safetensors"):
        (tmp_path / name).write_bytes((there / "checkpoint" / name).read_bytes())
    made = Tokenizer(models.WordLevel({"a": 0}, "a"))
    made.save(str(tmp_path / "tokenizer.json"))
    assert weft("import", tmp_path, "--run", tmp_path / "run") == 2
    assert (
        "expected one symbol before a text, one after it, and one of [MASK], <mask>"
        in capsys.readouterr().err
    )
    assert not (tmp_path / "run").exists()


def test_a_tagger_and_a_classifier_start_with_its_states(imported: Any, tmp_path: Path) -> None:
    theirs, made, _, there = imported
    words = [word for word, tag in WORDS if tag]
    (tmp_path / "tags.tsv").write_text("".join(f"{word}\t{tag}\n" for word, tag in WORDS) * 30, "utf-8")
    (tmp_path / "texts.tsv").write_text("text\tlabel\n" + "open it\ta\nclose it\tb\n" * 30, "utf-8")
    for task, text in (("tag", " ".join(words)), ("classify", "open it")):
        recipe, run = tmp_path / f"{task}.yaml", tmp_path / task
        file = tmp_path / ("tags.tsv" if task == "tag" else "texts.tsv")
        assert weft("init", task, file, "--start", there / "run", "--output", recipe) == 0
        changes = ["training.max_updates=1", "training.optimiser.lr=0", "training.device=cpu"]
        assert weft("train", recipe, "--run", run, *changes) == 0
        opened = open_run(run, device="cpu")
        model, pipeline = opened.model, opened.pipeline
        found = made(text, truncation=False, padding=False, return_offsets_mapping=True)
        if task == "tag":
            given, mask = pipeline.lexicon.read([words])
            ends = [end for _, end in found.offset_mapping]
            before = [max(text.index(word) - 1, 0) for word in words]  # the space may be a piece of its own
            chosen = [next(n for n, end in enumerate(ends) if end > place) for place in before]
        else:
            given, mask = pipeline.reader.source(pipeline.reader.encode([text]), [text])
            chosen = list(range(len(found.input_ids)))
        with torch.no_grad():
            body = getattr(theirs, theirs.base_model_prefix)
            want = body(torch.tensor([found.input_ids])).last_hidden_state[0]
            close(model.memory(given, mask).states[0], want[chosen], 1e-5)
