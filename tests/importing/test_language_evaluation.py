"""The perplexity of an imported language model is the one that its own library computes for the same text.

Skipped with a message if the library is missing: pip install --group import-tests -c constraints.txt
"""

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("transformers", reason="pip install --group import-tests")

from tests.commands.shell import refused, weft
from tests.importing.language_models import llama_3, qwen
from tests.importing.random_models import transformers

POSITIONS = 61
TEXT = "Click the  button.\n\n In 2024, 中文\t🙂 \n\n\nOpen the file"
SIZES = {"vocab_size": 419, "n_positions": POSITIONS, "n_embd": 24, "n_layer": 2, "n_head": 3}


def nats(theirs: Any, ids: list[int]) -> float:
    """The library's own loss of a text, summed over its tokens after the first."""
    import torch

    with torch.no_grad():
        return float(theirs(torch.tensor([ids]), labels=torch.tensor([ids])).loss) * (len(ids) - 1)


@pytest.fixture(scope="module", params=["nothing", "its beginning"])
def imported(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A GPT-2 whose tokenizer puts nothing, or a symbol, before a text; a tokenizer; a run."""
    import torch

    there = tmp_path_factory.mktemp("gpt2")
    torch.manual_seed(5)
    theirs = transformers.GPT2LMHeadModel(
        transformers.GPT2Config(**SIZES, bos_token_id=0, eos_token_id=0)
    ).eval()
    theirs.transformer.wte.weight.data *= 20  # so that the tokens differ in probability
    theirs.save_pretrained(there / "checkpoint")
    (qwen() if request.param == "nothing" else llama_3()).save(str(there / "checkpoint" / "tokenizer.json"))
    made = transformers.PreTrainedTokenizerFast(tokenizer_file=str(there / "checkpoint" / "tokenizer.json"))
    for name in ("train", "valid"):
        (there / f"{name}.txt").write_text(TEXT * 9, "utf-8")
    weft(
        "import", there / "checkpoint", "--run", there / "run", "--train", there / "train.txt", "--valid",
        there / "valid.txt", code=0)  # fmt: skip
    return theirs, made, there


@pytest.mark.parametrize("text", [TEXT, f"{TEXT}\n", f"\n\n{TEXT}\n\n", "Open the file\n", "Open the file"])
def test_the_perplexity_of_a_text_is_the_librarys(imported: Any, text: str, tmp_path: Path) -> None:
    theirs, made, there = imported
    ids = made(text).input_ids
    assert 2 <= len(ids) <= POSITIONS
    (tmp_path / "one.txt").write_text(text, "utf-8", newline="")
    out, figures = tmp_path / "out", tmp_path / "all.json"
    answer = weft(
        "evaluate", there / "run", "--data", tmp_path / "one.txt", "--json", figures, "--output", out, code=0
    )
    total, found = nats(theirs, ids), json.loads(figures.read_text())
    scores = {name: one["value"] for name, one in found["scores"].items()}
    assert scores["perplexity"] == pytest.approx(math.exp(total / (len(ids) - 1)), rel=1e-5)
    assert scores["nats per word"] == pytest.approx(total / len(text.split()), rel=1e-5)
    assert scores["bits a character"] == pytest.approx(total / math.log(2) / len(text), rel=1e-5)
    assert "unit:token|vocabulary:imported 4" in answer.unfolded and "</s>" not in answer.out
    lines = [float(line) for line in out.read_text().splitlines()]
    assert len(lines) == len(text.removesuffix("\n").split("\n"))
    assert sum(lines) == pytest.approx(-total, abs=1e-3)


def test_each_line_has_the_tokens_that_begin_in_it(imported: Any, tmp_path: Path) -> None:
    import torch

    theirs, made, there = imported
    encoded = made(TEXT, return_offsets_mapping=True)
    ids = torch.tensor([encoded.input_ids])
    with torch.no_grad():
        logp = theirs(ids).logits.log_softmax(-1)[0, :-1].gather(1, ids[0, 1:, None])[:, 0].double().numpy()
    want = np.zeros(TEXT.count("\n") + 1)
    for value, (begin, _) in zip(logp, encoded.offset_mapping[1:], strict=True):
        want[TEXT[:begin].count("\n")] += value
    (tmp_path / "one.txt").write_text(TEXT, "utf-8", newline="")
    weft("evaluate", there / "run", "--data", tmp_path / "one.txt", "--output", tmp_path / "out", code=0)
    found = [float(line) for line in (tmp_path / "out").read_text().splitlines()]
    np.testing.assert_allclose(found, want, atol=2e-4)


def test_a_text_of_one_token_or_none_is_refused(imported: Any, tmp_path: Path) -> None:
    _, _, there = imported
    (tmp_path / "one.txt").write_text("\n\n", "utf-8")
    said = refused(weft("evaluate", there / "run", "--data", tmp_path / "one.txt"))
    assert "one.txt: expected a text of at least two tokens" in said


def test_a_run_of_an_older_recipe_is_evaluated_in_windows_too(imported: Any, tmp_path: Path) -> None:
    """Recipes of earlier imports say batches: lines."""
    theirs, made, there = imported
    recipe = there / "run" / "recipe.yaml"
    kept = recipe.read_text()
    recipe.write_text(kept.replace("batches: windows", "batches: lines"))
    (tmp_path / "one.txt").write_text(TEXT, "utf-8", newline="")
    answer = weft("evaluate", there / "run", "--data", tmp_path / "one.txt", "--json", tmp_path / "all.json")
    recipe.write_text(kept)
    assert answer.code == 0 and "batches: windows" in kept, answer.err
    found = json.loads((tmp_path / "all.json").read_text())["scores"]["perplexity"]["value"]
    ids = made(TEXT).input_ids
    assert found == pytest.approx(math.exp(nats(theirs, ids) / (len(ids) - 1)), rel=1e-5)
