"""Runs from Marian's model.npz compute Marian's formulas (marian/formulas.py), and read its vocabularies.

Marian cannot be installed, so the models are random ones, with its names and settings (marian/drawn.py).
"""

import io
import json
import shutil
import zipfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from tests.importing.kits.marian.drawn import BEFORE, FORMS, HERE, SETTINGS, drawn, imported, saved
from tests.importing.kits.marian.formulas import Marian
from tests.importing.kits.shared import trains_on
from weft.errors import CheckpointError, ConfigError
from weft.importing.kits.marian import _tokens
from weft.run import LoadedRun, open_run
from weft.tasks.seq2seq.encoding import collate_pairs
from weft.text.vocabulary import EOS

every_form = pytest.mark.parametrize("form", FORMS)


@pytest.fixture(scope="module")
def cut() -> dict[str, Any]:
    """How the library sentencepiece cuts lines."""
    return json.loads((HERE / "pieces.json").read_text(encoding="utf-8"))


def made(form: str, there: Path) -> tuple[Marian, LoadedRun]:
    settings = SETTINGS | FORMS[form]
    tensors = drawn(settings)
    imported(saved(there, settings, tensors), there / "run")
    return Marian(tensors, settings), open_run(there / "run", device="cpu")


@every_form
@torch.no_grad()
def test_each_token_has_the_probability_of_marians_formulas(
    form: str, tmp_path: Path, cut: dict[str, Any]
) -> None:
    oracle, opened = made(form, tmp_path)
    source, target = opened.pipeline.source, opened.pipeline.target
    lines = [(line, ids) for line, ids in cut["lines"] if 1 not in ids and ids]
    for (read, theirs), (written, wanted) in zip(lines[:8:2], lines[1:8:2], strict=True):
        batch = collate_pairs([source.encode(read)], [target.encode(written)])
        got = opened.model.head(opened.model.features(batch))[0]
        order = [number for number in range(len(target)) if number > 2 or number == 1]
        theirs_of = [0 if number == EOS else cut["pieces"].index(target._names[number]) if number > 3 else 1
                     for number in order]  # fmt: skip
        want = oracle.logp([*theirs, 0], [*wanted, 0])
        np.testing.assert_allclose(got[:, order].numpy(), want[:, theirs_of], atol=1e-5, rtol=0)


@pytest.mark.parametrize("form", ["base", "ssru", "before"])
def test_greedy_search_follows_marians_formulas(form: str, tmp_path: Path, cut: dict[str, Any]) -> None:
    oracle, opened = made(form, tmp_path)
    translator = opened.pipeline.translator(opened.model, replace(opened.pipeline.decoding, search="greedy"))
    lines = [(line, ids) for line, ids in cut["lines"] if 1 not in ids and 0 < len(ids) < 14]
    for line, ids in lines[:3]:
        written: list[int] = []
        limit = 3 * (len(ids) + 1) + 10
        while len(written) < limit and (not written or written[-1] != 0):
            logp = oracle.logp([*ids, 0], [*written, 0])[-1]
            logp[1] = -np.inf  # <unk>, which Marian does not write
            written.append(int(logp.argmax()))
        text = "".join(cut["pieces"][number] for number in written if number).replace("\u2581", " ").strip()
        (found,) = next(translator.translate([line]))
        assert found.text == text


def test_it_cuts_texts_as_the_library_does(tmp_path: Path, cut: dict[str, Any]) -> None:
    _, opened = made("base", tmp_path)
    names = opened.pipeline.source._names
    for line, ids in cut["lines"]:
        got = opened.pipeline.source.encode(line)
        assert got[-1] == EOS
        pieces = [cut["pieces"][number] for number in ids]
        assert [names[number] for number in got[:-1]] == pieces


def test_words_of_a_yml_are_read_as_marian_vocab_writes_them(tmp_path: Path) -> None:
    words = ["</s>", "<unk>", "casa", "1", '"', ":", "'", "\u00e9", "no", "- x"]
    lines = [
        "</s>: 0",
        "<unk>: 1",
        "casa: 2",
        '"1": 3',
        '"\\"": 4',
        '":": 5',
        "'''': 6",
        '"\\xe9": 7',
        "no: 8",
    ]
    (tmp_path / "vocab.yml").write_text("\n".join([*lines, '"- x": 9']) + "\n", encoding="utf-8")
    settings = SETTINGS | {"dim-vocabs": [10, 10]}
    path = saved(tmp_path / "model", settings, drawn(settings))
    imported(path, tmp_path / "run", vocabulary=(tmp_path / "vocab.yml",))
    source = open_run(tmp_path / "run", device="cpu").pipeline.source
    assert [source.order[number] for number in source.encode("casa 1 \" : ' \u00e9 no casa nada")] == [
        *(words.index(word) for word in ("casa", "1", '"', ":", "'", "\u00e9", "no", "casa")),
        1,
        0,
    ]


@pytest.mark.parametrize("line", ['"\\UFFFFFFFF": 1', '"\\ud800": 1', '"a: 1', "a: -1", "a: 0", "a b"])
def test_a_line_that_is_no_token_is_refused_by_its_number(tmp_path: Path, line: str) -> None:
    (tmp_path / "vocab.yml").write_text(f"a: 0\n{line}\n", encoding="utf-8")
    with pytest.raises(CheckpointError, match=r"vocab\.yml:2: expected a"):
        _tokens(tmp_path / "vocab.yml")


def test_the_decoders_settings_name_vocabularies_and_search(tmp_path: Path) -> None:
    path = saved(tmp_path / "model", SETTINGS, drawn(SETTINGS))
    shutil.copy(path.parent / "vocab.spm", path.parent / "other.spm")
    with pytest.raises(ConfigError, match="--vocabulary"):
        imported(path, tmp_path / "run")
    (path.parent / "model.npz.decoder.yml").write_text(
        "relative-paths: true\nvocabs:\n  - other.spm\n  - vocab.spm\nbeam-size: 6\nnormalize: 0.6\n"
    )
    imported(path.parent, tmp_path / "run")
    decoding = open_run(tmp_path / "run", device="cpu").recipe.plain()["decoding"]
    assert (decoding["beam"], decoding["length_penalty"]) == (6, 0.6)


def test_a_checkpoint_with_a_number_that_is_not_finite_is_refused(tmp_path: Path) -> None:
    tensors = drawn(SETTINGS)
    name = max(tensors, key=lambda one: tensors[one].size)
    tensors[name].flat[7] = np.nan
    with pytest.raises(CheckpointError, match=r"model\.npz: \d of [\d,]+ numbers of .* are not finite"):
        imported(saved(tmp_path / "model", SETTINGS, tensors), tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_it_trains_on_and_is_evaluated(tmp_path: Path) -> None:
    made("ssru", tmp_path)
    trains_on(tmp_path / "run", tmp_path)


@pytest.mark.parametrize(
    ("changes", "error", "says"),
    [
        ({"type": "s2s"}, ConfigError, "type"),
        ({"transformer-decoder-autoreg": "average-attention"}, ConfigError, "autoreg"),
        ({"transformer-decoder-autoreg": "rnn", "dec-cell": "gru"}, ConfigError, "dec-cell"),
        ({"transformer-postprocess": "dhn"}, ConfigError, "postprocess"),
        ({"transformer-preprocess": "n", "transformer-postprocess": "da"}, ConfigError, "postprocess-top"),
        (BEFORE | {"version": "v1.9.0 ba94c5b9"}, ConfigError, "version"),
        ({"transformer-ffn-activation": "gelu"}, ConfigError, "activation"),
        ({"transformer-ffn-depth": 3}, ConfigError, "ffn-depth"),
        ({"transformer-train-positions": True}, ConfigError, "train-positions"),
        ({"lemma-dim-emb": 64}, ConfigError, "lemma"),
        ({"right-left": True}, ConfigError, "right-left"),
        ({"enc-depth": 3}, CheckpointError, "missing"),
        ({"enc-depth": 1}, CheckpointError, "not part"),
        ({"dec-depth": 10**8}, CheckpointError, "dec-depth"),
        ({"transformer-heads": 5}, CheckpointError, "heads"),
        ({"transformer-tied-layers": [1]}, CheckpointError, "tied-layers"),
        ({"dim-emb": 14}, CheckpointError, "dim-emb|heads|shape|asks|gives"),
    ],
)
def test_another_setting_is_refused(
    changes: dict[str, Any], error: type[Exception], says: str, tmp_path: Path
) -> None:
    path = saved(tmp_path / "model", SETTINGS | changes, drawn(SETTINGS))
    with pytest.raises(error, match=says):
        imported(path, tmp_path / "run")
    assert [one.name for one in tmp_path.iterdir()] == ["model"]


def test_damaged_hostile_and_binary_files_are_refused(tmp_path: Path) -> None:
    tensors = drawn(SETTINGS)
    path = saved(tmp_path / "model", SETTINGS, tensors)
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(CheckpointError, match="cannot be read"):
        imported(path, tmp_path / "run")
    saved(tmp_path / "model", SETTINGS, tensors, objects=np.array([print], dtype=object))
    with pytest.raises(CheckpointError, match="pickle"):
        imported(path, tmp_path / "run")
    saved(tmp_path / "model", SETTINGS, tensors, packed=np.zeros(3, np.int8))
    with pytest.raises(CheckpointError, match="packed"):
        imported(path, tmp_path / "run")
    with zipfile.ZipFile(path, "a", zipfile.ZIP_DEFLATED) as archive:
        zeros = io.BytesIO()
        np.save(zeros, np.zeros(30 << 20, np.float32))
        archive.writestr("bomb.npy", zeros.getvalue())
    with pytest.raises(CheckpointError, match="bytes in a file"):
        imported(path, tmp_path / "run")
    binary = tmp_path / "model.bin"
    binary.write_bytes(b"\x01" + bytes(15))
    with pytest.raises(ConfigError, match="marian-conv"):
        imported(binary, tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_a_wrong_or_missing_vocabulary_is_refused(tmp_path: Path) -> None:
    settings = SETTINGS | {"dim-vocabs": [90, 90]}
    path = saved(tmp_path / "model", settings, drawn(settings))
    with pytest.raises(CheckpointError, match="has 90 source tokens, the vocabulary 160"):
        imported(path, tmp_path / "run")
    for bad in ("</s>: 0\n<unk>: 0\n", "</s>: 0\nx\n", "x: 0\n", "</s>: 0\n<unk>: 99999999\n"):
        (tmp_path / "bad.yml").write_text(bad)
        with pytest.raises(CheckpointError, match=r"bad\.yml"):
            imported(path, tmp_path / "run", vocabulary=(tmp_path / "bad.yml",))
    (tmp_path / "cut.yml").write_text("</s>: 0\n<unk>: 1\na@@: 2\n")
    with pytest.raises(ConfigError, match="--subwords"):
        imported(path, tmp_path / "run", vocabulary=(tmp_path / "cut.yml",))
    (path.parent / "vocab.spm").unlink()
    with pytest.raises(ConfigError, match="--vocabulary"):
        imported(path, tmp_path / "run")
