"""tokenizer.json: round trips, readable by the library; unsupported parts are rejected."""

import json
import stat
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Tokenizer

from weft.errors import CheckpointError
from weft.store import jsonfile
from weft.text.loading import load_vocabulary
from weft.text.pieces import SPECIALS
from weft.text.vocabulary import Vocabulary

LINES = ["Click the button, the Button.", "the cat sat on the mat (twice) 12"] * 3
ODD = [" \x1c\x85", "ΟΔΟΣ, Ο.ΔΟ\u0301Σ. ΣΑΣ", "İSTANBUL", "<eos> in <unk><pad>", "a\x1cb"]
SIZES = {"word": None, "space": None, "character": None, "bpe": 40, "unigram": 40}


@pytest.mark.parametrize("kind", SIZES)
@pytest.mark.parametrize("form", ["nfc", "nfkc", "none"])
@pytest.mark.parametrize("lowercase", [False, True])
def test_loading_gives_the_same_vocabulary(kind: str, form: str, lowercase: bool, tmp_path: Path) -> None:
    first = Vocabulary.train(LINES, kind=kind, size=SIZES[kind], form=form, lowercase=lowercase)
    first.save(tmp_path / "tokenizer.json")
    second = load_vocabulary(tmp_path / "tokenizer.json")
    assert (second.kind, second.form, second.lowercase) == (kind, form, lowercase)
    assert second.pieces(range(len(second))) == first.pieces(range(len(first)))
    texts = [*LINES, "The ﬁsh, e\u0301té ▁ zzz"]
    assert second.encode_batch(texts) == first.encode_batch(texts)


@pytest.mark.parametrize("kind", SIZES)
def test_the_library_alone_reads_the_file_and_agrees(kind: str, tmp_path: Path) -> None:
    vocabulary = Vocabulary.train(LINES, kind=kind, size=SIZES[kind], lowercase=True)
    vocabulary.save(tmp_path / "tokenizer.json")
    alone = Tokenizer.from_file(str(tmp_path / "tokenizer.json"))
    for text in ["  Click the  mat, ", "the cat (12)", "", *ODD]:
        ids = vocabulary.encode(text)
        assert alone.encode(text).ids == ids
        assert alone.decode([2, *ids, 3]) == vocabulary.decode(ids)


@given(text=st.text(st.sampled_from("ΑΣσςα Σ.'’\u0301\u00ad\u200dbZ1İǅʰ\u0345-ⅣⓐΌ\x1c\x85"), max_size=9))
def test_letters_are_lowered_as_python_does(text: str) -> None:
    vocabulary = Vocabulary.train(["a"], kind="word", size=None, form="none", lowercase=True)
    library = Tokenizer.from_str(json.dumps(vocabulary.as_json()))
    assert library.normalizer.normalize_str(text).strip() == " ".join(text.lower().split())


def test_files_of_earlier_versions_are_read(tmp_path: Path) -> None:
    vocabulary = Vocabulary.train(LINES, kind="bpe", size=40, lowercase=True)
    content = vocabulary.as_json()
    special = [{"id": n, "content": name, "special": True} for n, name in enumerate(SPECIALS)]
    plain = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False}
    content["added_tokens"] = [one | plain for one in special]
    steps = [{"type": "NFC"}, {"type": "Lowercase"}, {"type": "Strip"}, {"type": "Prepend", "prepend": " "}]
    content["normalizer"] = {"type": "Sequence", "normalizers": steps}
    (tmp_path / "tokenizer.json").write_text(json.dumps(content), "utf-8")
    loaded = load_vocabulary(tmp_path / "tokenizer.json")
    assert loaded.as_json() == vocabulary.as_json()
    assert loaded.encode_batch(LINES) == vocabulary.encode_batch(LINES)


def break_it(tmp_path: Path, change: object) -> Path:
    path = tmp_path / "tokenizer.json"
    Vocabulary.train(LINES, kind="bpe", size=40).save(path)
    content = json.loads(path.read_text("utf-8"))
    change(content)
    path.write_text(json.dumps(content), "utf-8")
    return path


def swap(content: dict) -> None:
    vocab = content["model"]["vocab"]
    vocab["<sos>"], vocab["<eos>"] = vocab["<eos>"], vocab["<sos>"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (swap, "expected its first pieces to be <pad>, <unk>, <sos>, <eos>"),
        (
            lambda content: content["model"].update(type="WordPiece"),
            "a model of type 'WordPiece', expected one of BPE",
        ),
        (lambda content: content["model"].update(vocab={"<pad>": 7}), "not numbered from 0 without gaps"),
        (lambda content: content["model"].update(vocab={"<pad>": "x"}), "not numbered from 0"),
        (lambda content: content["model"].update(vocab=[1, 2]), "a part is missing or of the wrong type"),
        (
            lambda content: content["model"]["merges"].append(["t", "zz"]),
            "merge of 't' and 'zz' is not among",
        ),
        (lambda content: content["model"]["merges"].append("t h"), "tokenizer.json"),
        (lambda content: content.pop("normalizer"), "a part is missing or of the wrong type"),
        (lambda content: content.pop("model"), "a part is missing or of the wrong type"),
    ],
)
def test_a_file_that_is_not_ours_is_refused(change: object, message: str, tmp_path: Path) -> None:
    path = break_it(tmp_path, change)
    with pytest.raises(CheckpointError, match=message):
        load_vocabulary(path)


@pytest.mark.parametrize(
    "raw", [b"", b"\x80\x04pickle", b"{", b"[" * 100_000, b"3", b"null", b'"text"', b"[]"]
)
def test_what_is_not_json_is_refused_in_one_sentence(raw: bytes, tmp_path: Path) -> None:
    (tmp_path / "tokenizer.json").write_bytes(raw)
    with pytest.raises(
        CheckpointError, match=r"tokenizer.json: .*; this is not a tokenizer.json of Weft"
    ) as error:
        load_vocabulary(tmp_path / "tokenizer.json")
    assert "\n" not in str(error.value)


def test_an_oversized_file_is_refused_without_being_read(tmp_path: Path) -> None:
    with (tmp_path / "tokenizer.json").open("wb") as file:
        file.truncate(jsonfile.LARGEST + 1)
    with pytest.raises(CheckpointError, match="larger than 64 MiB"):
        load_vocabulary(tmp_path / "tokenizer.json")


def test_the_files_own_pattern_and_code_are_not_used(tmp_path: Path) -> None:
    evil = {"type": "Split", "pattern": {"Regex": "(a+)+$"}, "behavior": "Removed", "invert": False}
    path = break_it(tmp_path, lambda content: content.update(pre_tokenizer=evil))
    loaded = load_vocabulary(path)
    assert loaded.decode(loaded.encode("the cat, sat")) == "the cat, sat"


def test_a_missing_file_and_a_directory_are_named(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match=r"none.json: is missing; this is not a run directory"):
        load_vocabulary(tmp_path / "none.json")
    with pytest.raises(CheckpointError, match=r"cannot be read \(Is a directory"):
        load_vocabulary(tmp_path)


def test_a_failed_write_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "tokenizer.json"
    vocabulary = Vocabulary.train(LINES, kind="word", size=None)
    vocabulary.save(path)
    before = path.read_bytes()

    def full(number: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(CheckpointError, match=r"cannot be written \(No space left on device\)"):
        vocabulary.save(path)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]
    assert stat.S_IMODE(path.stat().st_mode) & 0o400
