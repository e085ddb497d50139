"""Encoders of transformers become runs of the task masked, which fill gaps like the library's models.

Skipped with a message if the library is missing: pip install --group import-tests -c constraints.txt
"""

from pathlib import Path
from typing import Any

import pytest
import torch
from tokenizers import Tokenizer, models

from weft.tasks.masked.task import GapSettings

pytest.importorskip("transformers", reason="pip install --group import-tests")

from tests.commands.exporting import exported
from tests.commands.shell import refused, weft
from tests.importing.masked_models import SPELLING, sentences, write_checkpoint
from tests.importing.random_models import transformers
from tests.importing.started import TEXT, first_pieces, imported_run, started, states, trains_on
from tests.laws.members import close
from weft.run import open_run
from weft.tasks.predictor import Place

TEXTS = ["The [MASK] is open", "[MASK] the button.", "Ünicode [MASK] and [MASK]", "a ([MASK])"]


@pytest.fixture(scope="module", params=SPELLING)
def imported(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The library's model, its tokenizer, its mask, and the folder of the imported run."""
    there = tmp_path_factory.mktemp("run")
    mask = SPELLING[request.param][1]
    theirs = write_checkpoint(request.param, there / "checkpoint")
    file = there / "checkpoint" / "tokenizer.json"
    imported_run(there, sentences("valid")[:30], sentences("valid")[:7])
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


def test_a_run_predicts_and_trains_on(imported: Any) -> None:
    *_, there = imported
    written = weft("predict", there / "run", stdin="".join(f"{text}\n" for text in TEXTS).encode(), code=0)
    assert len(written.lines) == len(TEXTS) and "MASK" not in written.out
    assert "perplexity" in weft("evaluate", there / "run", "--data", there / "valid.txt", code=0).out
    trains_on(there / "run", there / "tuned")


def test_a_run_fills_gaps_without_weft(imported: Any, tmp_path: Path) -> None:
    pytest.importorskip("onnxscript", reason="pip install -e .[export]")
    from weft.export.formats.onnx import program

    *_, there = imported
    assert "answers equal to Weft's: 7 of 7" in exported(there / "run", tmp_path / "out").out
    model, opened = program(tmp_path / "out"), open_run(there / "run", device="cpu")
    for options in ({}, {"nbest": 3, "scores": True}):
        filler = opened.pipeline.predictor(opened.model, GapSettings(**options))
        parsed = [filler.parse(text, Place("input")) for text in TEXTS]
        assert [model(text, **options) for text in TEXTS] == [one.text() for one in filler.answers(parsed)]


def test_a_tokenizer_without_a_mask_is_refused(imported: Any, tmp_path: Path) -> None:
    *_, there = imported
    for name in ("config.json", "model.safetensors"):
        (tmp_path / name).write_bytes((there / "checkpoint" / name).read_bytes())
    made = Tokenizer(models.WordLevel({"a": 0}, "a"))
    made.save(str(tmp_path / "tokenizer.json"))
    said = refused(weft("import", tmp_path, "--run", tmp_path / "run"))
    assert "expected one symbol before a text, one after it, and one of [MASK], <mask>" in said
    assert not (tmp_path / "run").exists()


def test_a_tagger_and_a_classifier_start_with_its_states(imported: Any, tmp_path: Path) -> None:
    theirs, made, _, there = imported
    found = made(TEXT, truncation=False, padding=False, return_offsets_mapping=True)
    with torch.no_grad():
        body = getattr(theirs, theirs.base_model_prefix)
        want = body(torch.tensor([found.input_ids])).last_hidden_state[0]
    first = first_pieces([end for _, end in found.offset_mapping])
    close(states(started(there / "run", "tag", tmp_path)), want[first], 1e-5)
    close(states(started(there / "run", "classify", tmp_path)), want, 1e-5)
