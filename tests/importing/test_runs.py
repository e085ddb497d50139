"""An imported checkpoint directory becomes a run that reads, generates and trains like the original model."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from tokenizers import Tokenizer, processors
from torch import nn

from tests.importing.byte_level import tokenizer
from tests.laws.members import close
from weft import cli
from weft.data.corpora import corpus
from weft.run import open_run
from weft.search.greedy import greedy_search
from weft.search.hypotheses import to_lists

transformers = pytest.importorskip(
    "transformers", reason="transformers is not installed: pip install --group import-tests"
)
transformers.utils.logging.disable_progress_bar()

LINES = ["Click the button.", "Ünicode, a line break", "x", "The file is open in another window"]


@pytest.fixture(scope="module", params=["bart", "marian"])
def imported(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The library's model, its tokenizer, and the imported run."""
    there = tmp_path_factory.mktemp(request.param)
    made = tokenizer()
    settings: dict[str, Any] = {
        "vocab_size": 317,  # more rows than pieces, as in real checkpoints
        "d_model": 12,
        "encoder_layers": 1,
        "decoder_layers": 2,
        "encoder_attention_heads": 3,
        "decoder_attention_heads": 2,
        "encoder_ffn_dim": 19,
        "decoder_ffn_dim": 17,
        "max_position_embeddings": 101,
        "pad_token_id": 1,
        "bos_token_id": 0,
        "eos_token_id": 2,
        "forced_eos_token_id": None,
    }
    torch.manual_seed(3)
    if request.param == "bart":
        made.post_processor = processors.TemplateProcessing(
            single="<s> $A </s>", special_tokens=[("<s>", 0), ("</s>", 2)]
        )
        config = transformers.BartConfig(**settings, decoder_start_token_id=2)
        theirs: Any = transformers.BartForConditionalGeneration(config)
    else:
        made.post_processor = processors.TemplateProcessing(single="$A </s>", special_tokens=[("</s>", 2)])
        config = transformers.MarianConfig(**settings, decoder_start_token_id=1, scale_embedding=True)
        theirs = transformers.MarianMTModel(config)
    for name, parameter in theirs.named_parameters():
        if "embed_positions" not in name:
            parameter.data += 0.2 * torch.randn(parameter.shape)
    theirs.final_logits_bias = 0.1 * torch.randn(theirs.final_logits_bias.shape)
    theirs.eval().save_pretrained(there / "checkpoint")
    made.save(str(there / "checkpoint" / "tokenizer.json"))
    command = ["import", str(there / "checkpoint"), "--run", str(there / "run")]
    with pytest.raises(SystemExit) as leave:
        cli.main([*command, "--source", "en", "--target", "es"])
    assert leave.value.code == 0
    return theirs, made, there / "run"


def frame(theirs: nn.Module, made: Tokenizer, text: str) -> list[int]:
    return [theirs.config.decoder_start_token_id, *made.encode(text, add_special_tokens=False).ids]


@torch.no_grad()
def test_it_gives_each_piece_the_same_probability(imported: Any) -> None:
    theirs, made, run = imported
    opened = open_run(run, device="cpu")
    source, target = opened.pipeline.source, opened.pipeline.target
    order = torch.tensor(target.order)
    for line in LINES:
        ids = torch.tensor([made.encode(line).ids])
        written = torch.tensor([frame(theirs, made, "Abrir la ventana")])
        want = theirs(input_ids=ids, decoder_input_ids=written).logits.log_softmax(-1)[0]
        here = torch.tensor(source.encode(line))[None]
        state = opened.model.start(here, torch.ones_like(here, dtype=torch.bool))
        words = torch.tensor([[2, *target.encode("Abrir la ventana")]])
        got = opened.model.head(opened.model.decoder(opened.model.embed(words), state)[0])[0]
        kept = [place for place in range(len(order)) if got[0, place] > -1000]
        close(got[:, kept], want[:, order[kept]], 1e-5)
        assert sorted(order[kept].tolist()) == list(range(317))  # every piece of the library's, each once


@torch.no_grad()
def test_it_writes_what_the_library_writes(imported: Any) -> None:
    theirs, made, run = imported
    opened = open_run(run, device="cpu")
    banned = [theirs.config.pad_token_id, made.token_to_id("<unk>"), theirs.config.decoder_start_token_id]
    banned = [number for number in banned if number != theirs.config.eos_token_id]
    for line in LINES:
        want = theirs.generate(
            torch.tensor([made.encode(line).ids]),
            num_beams=1,
            do_sample=False,
            max_new_tokens=13,
            suppress_tokens=banned,
        )[0, 1:].tolist()
        here = torch.tensor(opened.pipeline.source.encode(line))[None]
        state = opened.model.start(here, torch.ones_like(here, dtype=torch.bool))
        first = torch.tensor([2])
        found = greedy_search(opened.model.step, state, first, eos=3, max_length=13, banned=(0, 1, 2))
        got = [opened.pipeline.target.order[number] for number in to_lists(found, 3)[0][0]]
        assert got == [number for number in want if number != 2]


def test_text_comes_back(imported: Any) -> None:
    _, _, run = imported
    target = open_run(run, device="cpu").pipeline.target
    for line in LINES:
        ids = target.encode(line)
        assert target.decode(ids) == line
        assert [word.text for word in target.words(ids)] == line.split()
        assert "".join(target.pieces(ids)).isprintable()


def test_it_predicts_and_learns_on(imported: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _, _, run = imported
    (tmp_path / "lines.en").write_text("\n".join(LINES) + "\n", "utf-8")
    with pytest.raises(SystemExit) as leave:
        cli.main(["predict", str(run), str(tmp_path / "lines.en"), "--beam", "2"])
    out = capsys.readouterr().out
    assert leave.value.code == 0 and out.count("\n") == len(LINES)
    pairs = {"train": 20, "valid": 5}
    for split, count in pairs.items():
        every = corpus("libreoffice-help", "en", "es", "valid")
        rows = [row for row in every if len(row[1]) < 40][:count]  # at most twice that plus ten are generated
        (tmp_path / f"{split}.en").write_text("\n".join(source for _, source, _ in rows) + "\n", "utf-8")
        (tmp_path / f"{split}.es").write_text("\n".join(target for _, _, target in rows) + "\n", "utf-8")
    before = open_run(run, device="cpu")
    changes = [f"data.folder={tmp_path}", "training.max_updates=1"]
    changes += ["training.optimiser={use: adamw, lr: 1.0e-9}", "training.device=cpu", "training.workers=1"]
    with pytest.raises(SystemExit) as leave:
        cli.main(["train", str(run / "recipe.yaml"), *changes, "--run", str(run)])
    assert leave.value.code == 0, capsys.readouterr().err
    after = open_run(run, device="cpu").model.state_dict()
    for name, tensor in before.model.state_dict().items():  # starts from the import
        close(after[name], tensor, 1e-6)


@torch.no_grad()
def test_gpt2_becomes_a_language_model(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    torch.manual_seed(3)
    made = tokenizer()
    config = transformers.GPT2Config(
        vocab_size=311, n_positions=101, n_embd=12, n_layer=2, n_head=3, bos_token_id=2, eos_token_id=2
    )
    theirs = transformers.GPT2LMHeadModel(config).eval()
    for parameter in theirs.parameters():
        parameter.data += 0.2 * torch.randn(parameter.shape)
    theirs.save_pretrained(tmp_path / "checkpoint")
    made.save(str(tmp_path / "checkpoint" / "tokenizer.json"))
    with pytest.raises(SystemExit) as leave:
        cli.main(["import", str(tmp_path / "checkpoint"), "--run", str(tmp_path / "run")])
    assert leave.value.code == 0
    opened = open_run(tmp_path / "run", device="cpu")
    order = torch.tensor(opened.pipeline.vocabulary.order)
    for line in LINES:
        ids = made.encode(line).ids
        want = theirs(torch.tensor([[2, *ids]])).logits.log_softmax(-1)[0]
        state = opened.model.start(None, torch.ones(1, 1, dtype=torch.bool))
        numbers = torch.tensor([[3, *opened.pipeline.vocabulary.encode(line)]])
        got = opened.model.head(opened.model.decoder(opened.model.embed(numbers), state)[0])[0]
        kept = [place for place in range(len(order)) if got[0, place] > -1000]
        close(got[:, kept], want[:, order[kept]], 1e-5)
        assert sorted(order[kept].tolist()) == list(range(311))
        # The tokenizer puts nothing before a text, so neither does a prediction.
        writes = theirs.generate(
            torch.tensor([ids]), do_sample=False, max_new_tokens=9, suppress_tokens=[3], pad_token_id=1
        )[0].tolist()
        writes = writes[: writes.index(2)] if 2 in writes else writes
        (tmp_path / "prompt").write_text(line + "\n", "utf-8")
        changes = ["--set", "max_tokens=9", "--set", "search=greedy"]
        capsys.readouterr()
        with pytest.raises(SystemExit) as leave:
            cli.main(["predict", str(tmp_path / "run"), str(tmp_path / "prompt"), *changes])
        assert leave.value.code == 0
        assert capsys.readouterr().out.strip() == made.decode(writes).strip()


def test_what_becomes_no_run_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def refused(*arguments: str) -> str:
        with pytest.raises(SystemExit) as leave:
            cli.main(["import", *arguments])
        assert leave.value.code == 2
        return capsys.readouterr().err

    (tmp_path / "config.json").write_text(json.dumps({"model_type": "vit"}), "utf-8")
    assert "model.safetensors: no such file" in refused(str(tmp_path), "--run", str(tmp_path / "run"))
    (tmp_path / "model.safetensors").write_bytes(b"\x02\0\0\0\0\0\0\0{}")
    said = refused(str(tmp_path), "--run", str(tmp_path / "run"))
    assert "model_type: " in said and "got vit" in said
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "bart"}), "utf-8")
    said = refused(str(tmp_path), "--run", str(tmp_path / "run"), "--source", "en")
    assert "a bart needs --source and --target, got en and None" in said
    assert not (tmp_path / "run").exists()
