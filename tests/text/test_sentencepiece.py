"""SentencePiece models of other programs: cut as the library cuts, saved, read again, refused if damaged.

Skipped with a message if the library is missing: pip install -e . -c constraints.txt
"""

import io
from pathlib import Path
from typing import Any

import pytest

from weft.data.corpora import corpus
from weft.errors import CheckpointError, DataError
from weft.text.loading import load_vocabulary
from weft.text.pieces import SPECIALS
from weft.text.sentencepiece import SentencePieces, read_model, read_numbers, read_pieces
from weft.text.vocabulary import UNK

sentencepiece = pytest.importorskip(
    "sentencepiece", reason="sentencepiece is not installed: pip install -e ."
)
ODD = [
    "",
    " ",
    "  two   spaces ",
    "a\tb\nc",
    "日本語 text",
    "ｆｕｌｌ ｗｉｄｔｈ ﬁ ½ ™",
    "▁under a_b",
    "e\u0301 é a\u0300\u0301\u0302b",
    "\u200bzero\u00a0nbsp\ufeff\u3000\u0085",
    "👩‍👩‍👧 🏽 한국어 ᄒ กำ ｶﾞ",
    "x" * 200,
    "<unk> </s> <s> <pad>",
    "\x01 a\x00b",
]


def lines(language: int, split: str = "test") -> list[str]:
    return [row[language] for row in corpus("libreoffice-help", "en", "es", split)]


def learnt(texts: list[str], path: Path, **settings: Any) -> Any:
    """A model in a file; the library's processor of it."""
    made = io.BytesIO()
    usual = {"vocab_size": 300, "hard_vocab_limit": False, "num_threads": 1, "minloglevel": 2}
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(texts), model_writer=made, **(usual | settings)
    )
    path.write_bytes(made.getvalue())
    return sentencepiece.SentencePieceProcessor(model_file=str(path))


KINDS: dict[str, dict[str, Any]] = {
    "unigram": {},
    "bpe": {"model_type": "bpe", "vocab_size": 500, "character_coverage": 0.98},
    "folded": {"normalization_rule_name": "nmt_nfkc_cf"},
    "nfkc": {"normalization_rule_name": "nfkc"},
    "as it is": {"normalization_rule_name": "identity"},
    "no prefix": {"add_dummy_prefix": False, "remove_extra_whitespaces": False},
    "symbols": {"user_defined_symbols": ["<x>", "Click"], "vocab_size": 400},
}


@pytest.mark.parametrize("kind", KINDS)
def test_every_text_is_cut_as_the_library_cuts_it(kind: str, tmp_path: Path) -> None:
    theirs = learnt(lines(1)[:300], tmp_path / "x.spm", **KINDS[kind])
    names = [theirs.id_to_piece(number) for number in range(3, theirs.get_piece_size()) if number % 7]
    ours = SentencePieces(read_model(tmp_path / "x.spm"), [*SPECIALS, *names], framed=True)
    numbers = {name: number for number, name in enumerate(ours.pieces(range(len(ours)))) if number > 3}
    ours.save(tmp_path / "tokenizer.json")
    again = load_vocabulary(tmp_path / "tokenizer.json")
    texts = [*ODD, *lines(1, "valid")[:100], *lines(2, "valid")[:50]]
    for text, row, same in zip(texts, ours.encode_batch(texts), again.encode_batch(texts), strict=True):
        want = [numbers.get(piece, UNK) for piece in theirs.encode(text, out_type=str)]
        assert row == same == [*want, 3], text
        known = [number for number in want if number != UNK]
        assert ours.decode(row) == theirs.decode([ours._names[number] for number in known]).strip()
    assert len(again) == len(ours)


@pytest.mark.parametrize("kind", ["unigram", "bpe"])
def test_a_restricted_model_cuts_into_its_list_only(kind: str, tmp_path: Path) -> None:
    theirs = learnt(lines(1)[:300], tmp_path / "x.spm", **KINDS[kind])
    every = [theirs.id_to_piece(number) for number in range(3, theirs.get_piece_size())]
    names = [piece for number, piece in enumerate(every) if len(piece) == 1 or number % 3]
    model = read_model(tmp_path / "x.spm")
    ours = SentencePieces(model, [*SPECIALS, *names], framed=False, restricted=True)
    free = SentencePieces(model, [*SPECIALS, *names], framed=False)
    texts = lines(1, "valid")[:50]
    unknown = [sum(row.count(UNK) for row in one.encode_batch(texts)) for one in (ours, free)]
    assert unknown[0] < unknown[1]
    for text in texts:
        assert ours.decode(ours.encode(text)) == text or UNK in ours.encode(text)


def test_bytes_spell_what_no_piece_does(tmp_path: Path) -> None:
    theirs = learnt(lines(1)[:300], tmp_path / "x.spm", byte_fallback=True, vocab_size=600)
    names = [theirs.id_to_piece(number) for number in range(3, theirs.get_piece_size())]
    ours = SentencePieces(read_model(tmp_path / "x.spm"), [*SPECIALS, *names], framed=False)
    for text in ("Click 🙂 北京.", *lines(2, "valid")[:50]):
        assert UNK not in ours.encode(text)
        assert ours.decode(ours.encode(text)) == theirs.decode(theirs.encode(text))
    assert ours.alphabet.unknown("🙂 北京") == []


def test_a_mark_of_a_language_is_a_piece_of_its_own(tmp_path: Path) -> None:
    learnt(lines(1)[:300], tmp_path / "x.spm")
    ours = SentencePieces(read_model(tmp_path / "x.spm"), [*SPECIALS, ">>fra<<", "▁a"], framed=False)
    assert ours.encode(">>fra<< a") == [4, 5] and ours.encode(">>xyz<< a") == [1, 5]
    assert ours.alphabet.unknown(">>fra<< a 北") == ["北"]
    assert ours.alphabet.unknown(">>xyz<<") == list(">>xyz<<")
    assert ours.alphabet.lacking(">>fra<< 北") == [(8, 9)]
    assert ours.alphabet.readable(">>fra<< A\u00ad") == ">>fra<< a"
    lower = SentencePieces(read_model(tmp_path / "x.spm"), [*SPECIALS, "▁a"], framed=False, lowercase=True)
    assert lower.encode("A") == [4]


def test_a_piece_of_the_other_side_is_written_with_a_space(tmp_path: Path) -> None:
    learnt(lines(1)[:300], tmp_path / "x.spm")
    ours = SentencePieces(read_model(tmp_path / "x.spm"), [*SPECIALS, "▁a", "▁Ωmega"], framed=False)
    assert ours.decode([4, 5, 5]) == "a Ωmega Ωmega"


def test_what_is_damaged_or_of_another_kind_is_said(tmp_path: Path) -> None:
    theirs = learnt(lines(1)[:300], tmp_path / "whole.spm")
    whole = (tmp_path / "whole.spm").read_bytes()
    assert read_pieces(tmp_path / "whole.spm")[3] == theirs.id_to_piece(3)
    for raw in (b"", b"\xff" * 50, whole[: len(whole) // 2], b"not a model"):
        (tmp_path / "x.spm").write_bytes(raw)
        with pytest.raises(CheckpointError, match="is no SentencePiece model"):
            read_model(tmp_path / "x.spm")
    learnt(lines(1)[:300], tmp_path / "x.spm", model_type="char", vocab_size=200)
    with pytest.raises(CheckpointError, match=r"SentencePiece model .*type unigram or BPE .* got type 4"):
        read_model(tmp_path / "x.spm")
    with pytest.raises(CheckpointError, match=r"none\.spm: cannot be read"):
        read_model(tmp_path / "none.spm")
    with pytest.raises(DataError, match="half a surrogate pair"):
        SentencePieces(whole, SPECIALS, framed=False).encode("x\ud800")
    for content, said in (
        ("[1]", "expected object, got array"),
        ('{"a": 1, "b": 1}', "two pieces"),
        ('{"a": 9}', "number 9"),
    ):
        (tmp_path / "vocab.json").write_text(content, "utf-8")
        with pytest.raises(CheckpointError, match=said):
            read_numbers(tmp_path / "vocab.json", 9, pad=1, start=1, end=0)
