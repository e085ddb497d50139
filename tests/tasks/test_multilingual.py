"""One model for many pairs: the symbol or the prompt decides which language is written, unseen pairs too."""

import dataclasses
import json
import lzma
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from tests import toys
from tests.commands.given import scored_alike
from tests.commands.shell import refused, weft
from tests.shared import shared_run
from weft.errors import ConfigError
from weft.models import Generator
from weft.nn.decoders.transformer import TransformerDecoder
from weft.nn.embed.tokens import Tokens
from weft.nn.heads.categorical import Categorical
from weft.run import open_run
from weft.tasks.multilingual.data import ManyData
from weft.tasks.seq2seq.encoding import collate_pairs


@pytest.fixture(
    scope="module", params=["multilingual", pytest.param("multilingual by a prompt", marks=pytest.mark.slow)]
)
def run(request: pytest.FixtureRequest) -> Path:
    return shared_run(request.param)


def test_the_language_asked_for_is_written(run: Path) -> None:
    for target in ("bb", "cc"):
        answer = weft(
            "predict", run, "--source", "aa", "--target", target, stdin=b"one two three\n\nfour one\n"
        )
        lines = answer.out.split("\n")
        assert answer.code == 0 and len(lines) == 4 and lines[1] == ""
        assert set(lines[0].split() + lines[2].split()) <= set(toys.NUMBERS[target])


def test_trained_pairs_are_learnt_and_unseen_ones_are_scored(run: Path, tmp_path: Path) -> None:
    answer = weft("evaluate", run, "--split", "valid", "--json", tmp_path / "scores.json", "--beam", "1")
    assert answer.code == 0 and "never trained (zero-shot)" in answer.out
    found = json.loads((tmp_path / "scores.json").read_text("utf-8"))
    assert set(found["pairs"]) == {"aa-bb", "bb-aa", "aa-cc", "cc-aa", "bb-cc"}
    assert found["scores"]["mean BLEU of the 4 trained pairs"]["value"] > 40  # copying the source scores 0


def test_python_asks_in_the_same_way(run: Path) -> None:
    opened = open_run(run)
    translator = opened.pipeline.predictor(opened.model)
    said = weft("predict", run, "--source", "aa", "--target", "cc", stdin=b"two five\n").out.strip()
    assert translator.predict("two five", "cc", "aa") == said
    with pytest.raises(ConfigError, match="expected one of aa, bb, cc"):
        translator.predict("two", "dd", "aa")


def test_given_translations_are_scored_pair_by_pair_and_runs_translate_together(
    run: Path, tmp_path: Path
) -> None:
    opened = open_run(run)
    many, found, labels = opened.pipeline.predictor(opened.model), [], []
    for pair in (*opened.task.data.pairs, *opened.task.data.zero_shot):
        sources = [source for _, source, _ in opened.task.data.of(pair).open("valid")]
        found += [each[0] for each in many.of(pair).translate(sources)]
        labels += [pair] * len(sources)
    scored_alike(run, found, tmp_path, "--split", "valid", labels=labels)
    asked = ("predict", run, "--source", "aa", "--target", "cc")
    lines = b"two five\none one three\n"
    shutil.copytree(run, tmp_path / "copy")
    assert weft(*asked, "--ensemble", tmp_path / "copy", stdin=lines).lines == weft(*asked, stdin=lines).lines
    given = tmp_path / "given.txt"
    given.write_text(given.read_text().replace("bb-aa\t", "bb-cc\t", 1))
    said = refused(weft("evaluate", run, "--split", "valid", "--score", given))
    assert "given.txt:13: " in said and "bb-cc" in said and "bb-aa TAB TEXT" in said


@pytest.mark.slow
def test_an_export_to_onnx_answers_the_same(run: Path, tmp_path: Path) -> None:
    pytest.importorskip("onnxscript", reason="pip install -e .[export]")
    answer = weft("export", run, "--to", "onnx", "--output", tmp_path / "out")
    assert answer.code == 0 and ("20 of 20" in answer.out or "12 of 12" in answer.out), answer
    given = "un deux trois\n\nquatre\n"
    ours = weft("predict", run, "--target", "cc", "--source", "bb", stdin=given.encode())
    line = [sys.executable, str(tmp_path / "out" / "weft_onnx.py"), "--target", "cc", "--source", "bb"]
    done = subprocess.run(line, input=given, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ours.lines and len(ours.lines) == 3, ours
    refused = subprocess.run(line[:2], input=given, capture_output=True, text=True, check=False)
    assert refused.returncode == 1 and "--target: expected a language of aa-bb" in refused.stderr


def test_pairs_with_an_empty_side_are_in_no_score(run: Path, tmp_path: Path) -> None:
    opened = open_run(run)
    before = opened.pipeline.evaluate(opened.model, split="valid")
    for language in toys.NUMBERS:
        text = lzma.decompress((run.parent / "toy" / f"valid.{language}.xz").read_bytes()).decode()
        (tmp_path / f"valid.{language}").write_text(text + ("\n" if language == "bb" else "x\n"))
    opened.task.data = dataclasses.replace(opened.task.data, folder=tmp_path)
    after = opened.pipeline.evaluate(opened.model, split="valid")
    for pair, one in before.pairs.items():
        assert after.pairs[pair].left_out == ("bb" in pair)
        if "bb" in pair:
            assert [s.score for s in after.pairs[pair].scores] == [s.score for s in one.scores]
    assert after.text().count("1 pair with an empty side left out") == 3
    assert len(opened.task.data.of("aa-bb").complete("valid")[0]) == 12


def test_a_prediction_without_a_language_is_refused(run: Path) -> None:
    answer = weft("predict", run, stdin=b"one\n")
    assert answer.code == 2 and "--target: name the language to write, one of aa, bb, cc" in answer.err


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"pairs": ()}, "an empty list"),
        ({"pairs": ("en-de", "ende")}, "got 'ende'"),
        ({"pairs": ("en-de", "en-de")}, "each direction once"),
        (
            {"pairs": ("en-de",), "zero_shot": ("de-fr",)},
            "no trained pair has the target language of de-fr",
        ),
        ({"pairs": ("en-de",), "prompt": "to {target}"}, "{text} is missing"),
    ],
)
def test_wrong_settings_are_refused(settings: dict, sentence: str) -> None:
    with pytest.raises(ConfigError, match=sentence):
        ManyData(corpus="libreoffice-help", **settings)


def small(prompt: str) -> Generator:
    torch.manual_seed(3)
    embed = Tokens(19, 8)
    decoder = TransformerDecoder(8, None, size=8, num_heads=2, num_layers=2, inner=11, dropout=0.0)
    return Generator(embed, decoder, Categorical(8, 19, smoothing=0.0), prompt=prompt).double()


def test_a_decoder_alone_reads_its_prompt_as_one_sequence() -> None:
    """The loss is that of the joined sequence without padding, computed position by position."""
    sources, targets = [[5, 6, 7], [8]], [[9, 10], [11, 12, 13]]
    batch = collate_pairs(sources, targets)
    for prompt, first in (("read", None), ("learnt", 1)):
        model = small(prompt)
        want, count = 0.0, 0
        for source, target in zip(sources, targets, strict=True):
            whole = torch.tensor([[*source, 2, *target, 3]])
            h = model.decoder(model.embed(whole[:, :-1]), model.decoder.start(None, 1))[0]
            logp = model.head(h)[0].log_softmax(-1)
            for t in range(first or len(source) + 1, whole.shape[1]):
                if t == len(source):
                    continue  # <sos> ends the prompt; nobody has to write it
                want, count = want - float(logp[t - 1, whole[0, t]].detach()), count + 1
        loss = model.train().loss(batch)
        assert int(loss.count) == count
        assert float(loss.total.detach()) == pytest.approx(want, abs=1e-10)
