"""A Marian directory as published becomes a run that tokenises, reads and writes like the library.

The directory is made here: two SentencePiece models trained on the embedded corpus, a vocab.json without
some of their pieces, and a random model. Skipped with a message if a library is missing:
pip install --group import-tests -c constraints.txt
"""

import io
import json
import warnings
from pathlib import Path
from typing import Any

import pytest
import torch

pytest.importorskip("transformers", reason="pip install --group import-tests")

from tests.commands.shell import weft
from tests.importing.random_models import pair_model, transformers
from tests.importing.started import TEXT, started, states
from tests.laws.members import close
from weft.data.corpora import corpus
from weft.errors import CheckpointError, DataError
from weft.importing.runs import import_run
from weft.run import open_run
from weft.text.loading import load_vocabulary
from weft.text.sentencepiece import SentencePieces, read_numbers
from weft.text.vocabulary import UNK, Vocabulary

sentencepiece = pytest.importorskip(
    "sentencepiece", reason="sentencepiece is not installed: pip install --group import-tests"
)

MARK = ">>spa<<"
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
]

NAMES = "<unk> </s> <s> <pad>"
"""The tokenizer of transformers takes these words of a text for symbols; SentencePiece and Weft do not."""


def lines(language: int, split: str = "test") -> list[str]:
    return [row[language] for row in corpus("libreoffice-help", "en", "es", split)]


def learnt(texts: list[str], path: Path, **settings: Any) -> None:
    made = io.BytesIO()
    usual = {"vocab_size": 300, "hard_vocab_limit": False, "num_threads": 1, "minloglevel": 2}
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(texts), model_writer=made, **(usual | settings)
    )
    path.write_bytes(made.getvalue())


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Any, Any]:
    """The directory, the library's model and its tokenizer."""
    there = tmp_path_factory.mktemp("published")
    pieces: dict[str, None] = {}
    for name, language in (("source", 1), ("target", 2)):
        learnt(lines(language), there / f"{name}.spm")
        made = sentencepiece.SentencePieceProcessor(model_file=str(there / f"{name}.spm"))
        every = [made.id_to_piece(number) for number in range(made.get_piece_size())]
        pieces |= dict.fromkeys(every[3:-7])  # without its special symbols, and without the last few pieces
    names = ["</s>", "<unk>", MARK, *(piece for piece in pieces if piece != MARK), "<pad>"]
    (there / "vocab.json").write_text(
        json.dumps({name: number for number, name in enumerate(names)}), "utf-8"
    )
    theirs = pair_model(
        "marian",
        vocab_size=len(names),
        decoder_layers=1,
        max_position_embeddings=256,
        pad_token_id=len(names) - 1,
        eos_token_id=0,
        bos_token_id=None,
        decoder_start_token_id=len(names) - 1,
        forced_eos_token_id=None,
    )
    theirs.save_pretrained(there)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it recommends sacremoses, which it does not use for tokenising
        cutter = transformers.MarianTokenizer(
            source_spm=str(there / "source.spm"),
            target_spm=str(there / "target.spm"),
            vocab=str(there / "vocab.json"),
        )
    return there, theirs, cutter


@pytest.fixture(scope="module")
def run(published: tuple[Path, Any, Any], tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("imported") / "run"
    weft("import", published[0], "--run", made, "--source", "en", "--target", "es", code=0)
    return made


def there_of(vocabulary: Vocabulary, order: list[int], text: str) -> list[int]:
    return [order[number] for number in vocabulary.encode(text)]


def test_it_cuts_every_text_as_the_library_does(published: tuple[Path, Any, Any], run: Path) -> None:
    there, _, cutter = published
    opened = open_run(run, device="cpu")
    numbers = json.loads((there / "vocab.json").read_text("utf-8"))
    _, order = read_numbers(
        there / "vocab.json", len(numbers), pad=len(numbers) - 1, start=len(numbers) - 1, end=0
    )
    texts = [*ODD, *lines(1, "valid")[:200], f"{MARK} Click it.", ">>xyz<<no such language"]
    unknown = 0
    for text in texts:
        assert there_of(opened.pipeline.source, order, text) == cutter(text).input_ids, text
        unknown += UNK in opened.pipeline.source.encode(text)
    assert unknown > 3  # so that pieces missing from vocab.json do occur
    for text in [*ODD, *lines(2, "valid")[:200]]:
        ids = cutter(text_target=text).input_ids
        assert there_of(opened.pipeline.target, order, text) == ids[:-1], text
        known = [number for number in opened.pipeline.target.encode(text) if number != UNK]
        kept = [order[number] for number in known]
        want = cutter.decode(kept, skip_special_tokens=True, clean_up_tokenization_spaces=False)
        assert opened.pipeline.target.decode(known) == want


@torch.no_grad()
def test_it_gives_each_piece_the_same_probability_and_writes_the_same_text(
    published: tuple[Path, Any, Any], run: Path
) -> None:
    _, theirs, cutter = published
    opened = open_run(run, device="cpu", changes=["decoding.search=greedy", "decoding.verbatim=false"])
    translator = opened.pipeline.predictor(opened.model)
    start, size = theirs.config.decoder_start_token_id, theirs.config.vocab_size
    number_of = {name: number for number, name in enumerate(opened.pipeline.target._names)}
    rows = torch.tensor([number_of.get(cutter.convert_ids_to_tokens(there), -1) for there in range(size)])
    rows[0], rows[1] = 3, 1  # </s> and <unk>
    kept = [there for there in range(size) if there != start]
    for text in ["Click the button.", f"{MARK} Open the file", lines(1, "valid")[3]]:
        ids = torch.tensor([cutter(text).input_ids])
        written = cutter(text_target="Abra el archivo").input_ids[:-1]
        want = theirs(input_ids=ids, decoder_input_ids=torch.tensor([[start, *written]])).logits[0]
        want = want.log_softmax(-1)
        here = torch.tensor([opened.pipeline.source.encode(text)])
        state = opened.model.start(here, torch.ones_like(here, dtype=torch.bool))
        words = torch.tensor([[2, *opened.pipeline.target.encode("Abra el archivo")]])
        got = opened.model.head(opened.model.decoder(opened.model.embed(words), state)[0])[0]
        # Weft has no padding among its outputs, so the library's probability of it is shared by the rest.
        close(got[:, rows[kept]] - got[:, 3:4], want[:, kept] - want[:, 0:1], 1e-5)
        most = 2 * ids.shape[1] + 10
        found = theirs.generate(
            ids, num_beams=1, do_sample=False, max_new_tokens=most, suppress_tokens=[start, 1]
        )
        answer = cutter.decode(found[0], skip_special_tokens=True, clean_up_tokenization_spaces=False)
        assert translator.predict(text) == answer


def test_the_symbol_of_a_language_is_neither_named_nor_copied(run: Path) -> None:
    opened = open_run(run, device="cpu")
    translator, plain = opened.pipeline.predictor(opened.model), opened.pipeline.source
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        answer = translator.predict(f"{MARK} Open the file")
    assert MARK not in answer and "<" not in answer
    assert translator.lacking(f"{MARK} 北 file") == ["北"] == plain.alphabet.unknown(f"{MARK} 北 file")
    assert plain.alphabet.readable(f"{MARK} a\u00adb") == f"{MARK} ab"
    assert plain.alphabet.unknown(">>xyz<< file") == [">", ">", "<", "<"]


def test_it_is_saved_and_read_again(run: Path, tmp_path: Path) -> None:
    vocabulary = open_run(run, device="cpu").pipeline.target
    assert isinstance(vocabulary, SentencePieces)
    vocabulary.save(tmp_path / "tokenizer.json")
    again = load_vocabulary(tmp_path / "tokenizer.json")
    text = "Haga clic en el botón."
    ids = again.encode(text)
    assert ids == vocabulary.encode(text) and len(again) == len(vocabulary)
    assert [word.text for word in again.words(ids)] == again.decode(ids).split()
    assert "".join(again.pieces(ids)).replace("▁", " ").strip() == again.decode(ids)


def test_what_is_missing_is_said(published: tuple[Path, Any, Any], run: Path, tmp_path: Path) -> None:
    there, _, _ = published
    with pytest.raises(DataError, match="half a surrogate pair"):
        open_run(run, device="cpu").pipeline.source.encode("x\ud800")
    partial = tmp_path / "partial"
    partial.mkdir()
    for name in ("config.json", "model.safetensors", "vocab.json", "source.spm"):
        (partial / name).write_bytes((there / name).read_bytes())
    with pytest.raises(CheckpointError, match=r"target\.spm: cannot be read"):
        import_run(partial, tmp_path / "run", source="en", target="es")
    assert not (tmp_path / "run").exists()


def test_a_classifier_starts_with_the_states_of_its_encoder(
    published: tuple[Path, Any, Any], run: Path, tmp_path: Path
) -> None:
    _, theirs, cutter = published
    with torch.no_grad():
        want = theirs.get_encoder()(torch.tensor([cutter(TEXT).input_ids])).last_hidden_state[0]
    close(states(started(run, "classify", tmp_path)), want, 1e-5)
