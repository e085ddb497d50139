"""The tokenizer.json for other programs: symbols in a text are text, by number and by name."""

import json

import pytest
from tokenizers import Tokenizer

from weft.export.formats import tokenizer
from weft.text.vocabulary import UNK, Vocabulary

TEXTS = ["a cat sat on the <b>mat</b>", "unk pad eos sos <x> end of a", "pads < > the eos"] * 3


@pytest.mark.parametrize("symbols", [False, True])
@pytest.mark.parametrize("kind", ["word", "space", "character", "bpe", "unigram"])
def test_symbols_in_a_text_are_text_by_number_and_by_name(kind: str, symbols: bool) -> None:
    """CTranslate2 takes pieces by name; `symbols`: they were words of the training text too."""
    texts = [*TEXTS, *["<eos> <unk> <pad>"] * 2 * symbols]
    words = Vocabulary.train(texts, kind=kind, size=45 if kind in ("bpe", "unigram") else None)
    made = Tokenizer.from_str(json.dumps(tokenizer.tokenizer_json(words, "ctranslate2")))
    numbers = {piece: number for number, piece in enumerate(tokenizer.names(words, "ctranslate2"))}
    assert len(numbers) == len(words)
    for text in ("<unk>", "a<eos>", "zzz <unk> <pad><sos> qq", *tokenizer.ODD):
        found = made.encode(text, add_special_tokens=False)
        by_name = [
            numbers.get(piece, UNK) for piece in found.tokens
        ]  # another name is unknown to CTranslate2
        assert found.ids == by_name == words.encode(text), text
