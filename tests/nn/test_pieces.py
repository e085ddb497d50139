"""A word in context is the mean of its pieces' hidden states, independent of padding and batch."""

import torch

from weft.nn.embed.contextual import FirstPieces, PiecesInContext, WordsInPieces
from weft.nn.embed.tokens import Tokens
from weft.nn.encoders.transformer import TransformerEncoder
from weft.tasks.reused import words_in_pieces
from weft.text.vocabulary import EOS, SOS, Vocabulary

SENTENCES = [["ab", "c", "abca"], ["b"], ["ca", "zz"]]
LETTERS = Vocabulary.train(["abc cab"], kind="character", size=None)


def made(size: int = 6) -> PiecesInContext:
    torch.manual_seed(4)
    encoder = TransformerEncoder(6, size=size, num_layers=1, num_heads=2, dropout=0.0)
    return PiecesInContext(Tokens(len(LETTERS) + 1, 6), 6, encoder).double().eval()


def real(sentences: list[list[str]]) -> torch.Tensor:
    longest = max(map(len, sentences))
    return torch.arange(longest) < torch.tensor([len(words) for words in sentences])[:, None]


def test_a_word_is_the_mean_of_its_pieces() -> None:
    model = made()
    pieces = words_in_pieces(LETTERS, SENTENCES, 9)
    a, b, c = (LETTERS.encode(letter)[0] for letter in "abc")
    assert pieces.tokens[0].tolist() == [SOS, a, b, c, a, b, c, a, EOS]
    layers = model(pieces, real(SENTENCES))
    states = model.encoder(model.embed(pieces.tokens), pieces.mask).states
    assert len(layers) == model.num_mixed == 2 and layers[0].shape == (3, 3, 6)
    spans = {(0, 0): (1, 3), (0, 1): (3, 4), (0, 2): (4, 8), (1, 0): (1, 2), (2, 1): (3, 5)}
    for (row, word), (begin, end) in spans.items():
        torch.testing.assert_close(layers[1][row, word], states[row, begin:end].mean(0), rtol=1e-6, atol=1e-7)
    assert not layers[1][1, 1:].any()


def test_a_row_alone_equals_the_row_in_a_batch() -> None:
    model = made(10)
    whole = model(words_in_pieces(LETTERS, SENTENCES, 9), real(SENTENCES))
    assert len(whole) == model.num_mixed == 1 and model.width == 10
    for row, words in enumerate(SENTENCES):
        alone = model(words_in_pieces(LETTERS, [words], 9), real([words]))
        torch.testing.assert_close(whole[0][row, : len(words)], alone[0][0], rtol=1e-10, atol=1e-10)


def test_a_long_sentence_is_read_in_parts_that_no_word_crosses() -> None:
    model = made()
    pieces = words_in_pieces(LETTERS, SENTENCES, 4)
    a, b, c = (LETTERS.encode(letter)[0] for letter in "abc")
    rows = [[token for token in row if token] for row in pieces.tokens.tolist()]
    assert rows[:3] == [[SOS, a, b, c, EOS], [SOS, a, b, c, a, EOS], [SOS, b, EOS]]
    whole = model(pieces, real(SENTENCES))[1]
    first = model(words_in_pieces(LETTERS, [["ab", "c"]], 4), real([["ab", "c"]]))[1]
    last = model(words_in_pieces(LETTERS, [["abca"]], 4), real([["abca"]]))[1]
    torch.testing.assert_close(whole[0, :2], first[0], rtol=1e-10, atol=1e-10)
    torch.testing.assert_close(whole[0, 2:3], last[0], rtol=1e-10, atol=1e-10)
    longer = words_in_pieces(LETTERS, [["abcabc", "a"]], 4)
    assert [[token for token in row if token] for row in longer.tokens.tolist()] == [
        [SOS, a, b, c, a, EOS],
        [SOS, a, EOS],
    ]


def test_a_tagger_reads_the_first_piece() -> None:
    torch.manual_seed(4)
    encoder = TransformerEncoder(6, size=6, num_layers=1, num_heads=2, dropout=0.0)
    model = FirstPieces(Tokens(len(LETTERS) + 1, 6), encoder).double().eval()
    pieces = words_in_pieces(LETTERS, SENTENCES, 9, frame="before", leading=True)
    assert pieces.tokens[0, 0] == EOS and pieces.tokens[0, -1] != EOS
    states = encoder(model.embed(pieces.tokens), pieces.mask).states
    found = model(WordsInPieces(pieces, real(SENTENCES)))
    for (row, word), place in {(0, 0): 1, (0, 1): 3, (0, 2): 4, (1, 0): 1, (2, 0): 1, (2, 1): 3}.items():
        torch.testing.assert_close(found[row, word], states[row, place], rtol=1e-10, atol=0)
    assert not found[1, 1:].any()
