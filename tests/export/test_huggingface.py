"""A Transformer written for the transformers library computes and writes what Weft does."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.commands.shell import refused, weft
from tests.export import runs
from tests.export.runs import report
from weft.export.formats.tokenizer import ODD, tokenizer_json
from weft.run import open_run
from weft.text.vocabulary import Vocabulary

transformers = pytest.importorskip(
    "transformers", reason="transformers is not installed: pip install --group export-tests"
)
transformers.utils.logging.disable_progress_bar()
transformers.utils.logging.set_verbosity_error()

LEARNED: dict[str, Any] = {"positions": "learned", "max_length": 77}
SIZES = {"bpe": 211, "unigram": 211}
NO_BIAS: dict[str, Any] = {"embedding": {"bias": False}}
LLAMA: dict[str, Any] = {"positions": "rotary", "norm_kind": "rms", "activation": "swiglu", "bias": False}
BERT: dict[str, Any] = {"norm": "after", "entry_norm": True, "activation": "gelu", **LEARNED}
TRANSLATORS: dict[str, tuple[str, dict[str, Any]]] = {
    "marian": ("MarianMTModel", {"norm": "after", "activation": "silu"}),
    "marian untied": ("MarianMTModel", {"norm": "after", "embedding": {"shared": False, "scaled": False}}),
    "pegasus": ("PegasusForConditionalGeneration", {"decoder": {"num_layers": 1, "inner": 5}, "bias": False}),
    "bart": ("BartForConditionalGeneration", {"norm": "after", "entry_norm": True, **LEARNED}),
    "mbart": ("MBartForConditionalGeneration", {"entry_norm": True, "activation": "gelu_tanh", **LEARNED}),
    "blenderbot": ("BlenderbotForConditionalGeneration", {"embedding": {"tied": False}, **LEARNED}),
}
LANGUAGE: dict[str, tuple[str, dict[str, Any]]] = {
    "gpt2": ("GPT2LMHeadModel", {"decoder": {"activation": "gelu", **LEARNED}, **NO_BIAS}),
    "gpt2 letters": ("GPT2LMHeadModel", {"vocabulary": {"kind": "character", "size": None}, **NO_BIAS}),
    "llama groups": ("LlamaForCausalLM", {"decoder": LLAMA | {"heads": {"key_value": 1}}, **NO_BIAS}),
}


@pytest.mark.parametrize("name", TRANSLATORS)
def test_a_translator_computes_and_writes_what_weft_does(name: str, tmp_path: Path) -> None:
    kind, settings = TRANSLATORS[name]
    agrees(kind, runs.translator(tmp_path / "run", **settings), tmp_path / "out")


@pytest.mark.parametrize("name", LANGUAGE)
def test_a_language_model_computes_and_writes_what_weft_does(name: str, tmp_path: Path) -> None:
    kind, settings = LANGUAGE[name]
    agrees(kind, runs.language(tmp_path / "run", **settings), tmp_path / "out")


def agrees(kind: str, run: Path, out: Path) -> None:
    """Export; the report says how both programs compare."""
    answer = weft("export", run, "--to", "huggingface", "--output", out, code=0)
    nats, greedy, beam, *cut = report(answer.out)
    assert answer.out.startswith(kind) and greedy == 20
    # Of all pieces, also of those whose log-probability is -40. Weft in float32 differs by 1e-5 from itself
    # in float64 already on single rows, and the library's rotations and norms are float32 always.
    assert nats < 5e-5
    assert beam + sum(cut) >= 19  # generate goes on for longer where no text has ended well


def test_a_batch_with_padding_is_written_as_by_weft(tmp_path: Path) -> None:
    run = runs.translator(tmp_path / "run", norm="after")
    assert weft("export", run, "--to", "huggingface", "--output", tmp_path / "out").code == 0
    tokenizer = transformers.AutoTokenizer.from_pretrained(tmp_path / "out")
    model = transformers.AutoModelForSeq2SeqLM.from_pretrained(tmp_path / "out")
    lines = ["Click the button.", "x", "The file is open in <eos> another window"]
    read = tokenizer(lines, return_tensors="pt", padding=True)
    written = model.generate(**read, num_beams=1, length_penalty=None, max_length=None, max_new_tokens=12)
    found = tokenizer.batch_decode(written, skip_special_tokens=True)
    opened = open_run(run, device="cpu")
    expected = []
    for line in lines:
        tokens = torch.tensor([opened.pipeline.source.encode(line)])
        step, state = opened.model.step, opened.model.start(tokens, torch.ones_like(tokens, dtype=torch.bool))
        token, row = torch.tensor([2]), []
        for _ in range(12):
            logp, state = step(token, state)
            logp[:, :3] = -torch.inf
            token = logp.argmax(1)
            row.append(int(token))
            if row[-1] == 3:
                break
        expected.append(opened.pipeline.target.decode(row))
    assert found == expected and any(expected)


def test_a_masked_language_model_fills_gaps_as_weft_does(tmp_path: Path) -> None:
    run = runs.masked(tmp_path / "run", encoder=BERT)
    answer = weft("export", run, "--to", "huggingface", "--output", tmp_path / "out")
    assert answer.code == 0 and answer.out.startswith("BertForMaskedLM"), answer.err
    tokenizer = transformers.AutoTokenizer.from_pretrained(tmp_path / "out")
    model = transformers.AutoModelForMaskedLM.from_pretrained(tmp_path / "out")
    text = "Click the [MASK] of a <eos> file"
    read = tokenizer(text, return_tensors="pt")
    opened = open_run(run, device="cpu")
    filler: Any = opened.pipeline.predictor(opened.model)
    assert read["input_ids"][0].tolist() == filler.tokens(text)
    gap = read["input_ids"][0].tolist().index(tokenizer.convert_tokens_to_ids("[MASK]"))
    with torch.no_grad():
        prob = model(**read).logits[0, gap].softmax(-1)
    (expected,) = filler.fill(text, 5).gaps
    best = prob[4:-1].topk(5)
    assert best.values.tolist() == pytest.approx([each for _, each in expected], abs=1e-5)


@pytest.mark.parametrize(
    ("kind", "form", "lowercase"),
    [
        ("word", "nfkc", True),
        ("space", "none", False),
        ("character", "nfc", True),
        ("bpe", "nfkc", False),
        ("unigram", "none", True),
    ],
)
def test_every_vocabulary_gives_equal_numbers(kind: str, form: str, lowercase: bool, tmp_path: Path) -> None:
    made = Vocabulary.train(runs.TEXTS, kind=kind, size=SIZES.get(kind), form=form, lowercase=lowercase)
    content = tokenizer_json(made, "huggingface")
    (tmp_path / "tokenizer.json").write_text(json.dumps(content), "utf-8")
    config = {"tokenizer_class": "PreTrainedTokenizerFast", "split_special_tokens": True}
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(config))
    theirs = transformers.AutoTokenizer.from_pretrained(tmp_path)
    for text in [*runs.TEXTS[:50], *ODD]:
        assert theirs(text, add_special_tokens=False)["input_ids"] == made.encode(text), text
        back = theirs.decode([2, *made.encode(text), 3], skip_special_tokens=True)
        assert back == made.decode(made.encode(text))


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "positions": ({"positions": "relative"}, "--to ctranslate2"),
    "gated": ({"activation": "swiglu"}, "--to ctranslate2"),
    "vocabularies": ({"vocabulary": {"shared": False}}, "data.vocabulary.shared=true"),
    "recurrent": ({"encoder": runs.RECURRENT, "decoder": runs.RECURRENT}, "--to onnx"),
    "coverage": ({"norm": "after", "decoding": {"coverage": 0.2}}, "decoding.coverage"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_it_cannot_express_is_refused_before_anything_is_written(name: str, tmp_path: Path) -> None:
    settings, word = REFUSED[name]
    run = runs.translator(tmp_path / "run", **settings)
    message = refused(weft("export", run, "--to", "huggingface", "--output", tmp_path / "out"))
    assert word in message
    assert [one.name for one in tmp_path.iterdir()] == ["run"]


def test_a_bias_of_the_output_layer_is_refused_with_what_to_train(tmp_path: Path) -> None:
    run = runs.language(tmp_path / "run")
    message = refused(weft("export", run, "--to", "huggingface", "--output", tmp_path / "out"))
    assert "model.embedding.bias=false" in message


def test_other_encoders_and_8_bits_are_refused(tmp_path: Path) -> None:
    run = runs.masked(tmp_path / "run")
    message = refused(weft("export", run, "--to", "huggingface", "--output", tmp_path / "out"))
    assert "as in BERT" in message
    message = refused(weft("export", run, "--to", "huggingface", "--int8", "--output", tmp_path / "out"))
    assert message.startswith("weft: --int8")
