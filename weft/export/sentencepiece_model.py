"""A BPE or unigram vocabulary as a SentencePiece model with the same numbers.

SentencePiece knows no merges: of all neighbours it joins the pair whose joint piece scores best. A piece's
score is minus the rank of the merge that makes it; where two merges make one piece, the first counts. Weft's
boundaries (letters, digits, marks) need no rule, since no piece crosses one. Read next: formats/argos.py.
"""

import importlib
import json
from typing import Any

from weft.errors import ConfigError, ExportError
from weft.export.tokenizer import tokenizer_json
from weft.text.pieces import SPECIALS
from weft.text.vocabulary import EOS, PAD, SOS, UNK, Vocabulary

SPACE = "\u2581"


def check_vocabulary(vocabulary: Vocabulary, to: str) -> None:
    """Check that SentencePiece can express a vocabulary.

    Raises:
        ConfigError: says why not.
    """
    if vocabulary.kind not in ("bpe", "unigram"):
        raise ConfigError(
            f"data.vocabulary.kind: --to {to} expects bpe or unigram, got {vocabulary.kind}; train with one "
            "of them, or use --to ctranslate2"
        )
    if vocabulary.lowercase:
        raise ConfigError(
            f"data.vocabulary.lowercase: --to {to} expects false, since SentencePiece keeps the case of "
            "letters, got true; train without it, or use --to ctranslate2"
        )


def pieces(vocabulary: Vocabulary, to: str) -> list[tuple[str, float]]:
    """The pieces by number with SentencePiece's scores."""
    model: Any = tokenizer_json(vocabulary, to)["model"]
    if model["type"] == "Unigram":
        return [(piece.replace(" ", SPACE), float(score)) for piece, score in model["vocab"]]
    scores: dict[str, float] = {}
    for rank, (left, right) in enumerate(model["merges"]):
        scores.setdefault(left + right, -float(rank))
    low = -float(len(model["merges"]) + 1)
    every = sorted(model["vocab"], key=model["vocab"].__getitem__)
    return [(piece.replace(" ", SPACE), scores.get(piece, low)) for piece in every]


def sentencepiece_model(vocabulary: Vocabulary, to: str) -> bytes:
    """The file's content.

    Raises:
        ConfigError: two pieces have the same name in SentencePiece.
    """
    protocol: Any = importlib.import_module("sentencepiece.sentencepiece_model_pb2")
    rows = pieces(vocabulary, to)
    if len({piece for piece, _ in rows}) < len(rows):
        raise ConfigError(
            f"data.vocabulary: --to {to} expects texts without {SPACE}, which SentencePiece writes for a "
            "space, got a vocabulary with both; use --to ctranslate2"
        )
    kinds = protocol.ModelProto.SentencePiece
    model = protocol.ModelProto()
    for number, (piece, score) in enumerate(rows):
        entry = model.pieces.add()
        entry.piece, entry.score = piece, score
        entry.type = kinds.UNKNOWN if number == UNK else kinds.CONTROL if number <= EOS else kinds.NORMAL
    spec = model.trainer_spec
    spec.model_type = protocol.TrainerSpec.BPE if vocabulary.kind == "bpe" else protocol.TrainerSpec.UNIGRAM
    spec.vocab_size = len(rows)
    spec.pad_id, spec.unk_id, spec.bos_id, spec.eos_id = PAD, UNK, SOS, EOS
    spec.pad_piece, spec.unk_piece, spec.bos_piece, spec.eos_piece = SPECIALS
    spec.unk_surface = ""
    how = model.normalizer_spec
    how.name = "identity"
    how.add_dummy_prefix = how.remove_extra_whitespaces = how.escape_whitespaces = True
    return bytes(model.SerializeToString())


def check_numbers(vocabulary: Vocabulary, content: bytes, texts: list[str]) -> int:
    """Check that SentencePiece gives Weft's numbers for these texts; returns how many.

    Raises:
        ExportError: it does not.
    """
    import sentencepiece

    processor = sentencepiece.SentencePieceProcessor(model_proto=content)
    for text, ours in zip(texts, vocabulary.encode_batch(texts), strict=True):
        theirs = processor.encode(text)
        if theirs != ours and UNK not in ours:
            raise ExportError(
                f"SentencePiece gives {theirs[:8]} for {json.dumps(text[:40])}, expected Weft's {ours[:8]}; "
                "please report this text"
            )
    return len(texts)
