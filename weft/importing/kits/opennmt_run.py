"""What OpenNMT-py and Eole share: vocabularies, tables, and the run that is made of a model's parts.

Read next: opennmt.py, eole.py; ../writing.py.
"""

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

from weft.errors import CheckpointError, ConfigError
from weft.importing import names
from weft.importing.checkpoint import Origins
from weft.importing.kits.assembling import ToolkitTranslator, assembled
from weft.importing.kits.kit import CheckpointHints, given_file
from weft.importing.kits.vocabularies import RunVocabulary, TokenList, special_of
from weft.importing.names import tensor, zeros
from weft.importing.writing import RunParts

DECODING = {"search": "beam", "beam": 5, "length_penalty": 1.0, "max_ratio": 1.25, "max_extra": 5}
"""The search of onmt_translate and `eole predict` without options."""

COMPUTED = (".pe.pe",)  # tables that the model computes
JOINER = "\uffed"
HEAD, BIAS = "generator.weight", "generator.bias"


def run_of(
    given: CheckpointHints,
    tokens: Sequence[list[str]],
    symbols: Sequence[str],
    translator: ToolkitTranslator,
) -> RunParts:
    """The parts of a run."""
    if given.vocabulary:
        raise ConfigError(f"{given.path}: already contains its vocabularies; leave out --vocabulary")
    found = [_vocabulary(given, tokens[one], symbols, translator.place, one) for one in (0, 1)]
    return assembled(given, translator, found)


def tables(tensors: Mapping[str, Tensor], source: str, target: str, place: str, *, tied: bool) -> Origins:
    """The sources of the embedding tables and of the output layer; shared tables may be there once."""
    source, target = _first(tensors, source, target), _first(tensors, target, source)
    both = [tensors.get(name) for name in (target, HEAD)]
    if tied and both[0] is not None and both[1] is not None and not torch.equal(both[0], both[1]):
        raise CheckpointError(
            f"{place}: share_decoder_embeddings is set, but {target} and {HEAD} differ; "
            "do these settings belong to it?"
        )
    head = _first(tensors, HEAD, target) if tied else HEAD
    rows = tensors.get(head, torch.empty(0))
    return {
        **names.tables(source, target, head),
        **(tensor("head.bias", BIAS) if BIAS in tensors else zeros("head.bias", len(rows))),
    }


def width(tensors: Mapping[str, Tensor], *names: str) -> int:
    """Features of the first of these tables; 0 if there is none."""
    return next((tensors[name].shape[-1] for name in names if name in tensors), 0)


def _first(tensors: Mapping[str, Tensor], *names: str) -> str:
    return next((name for name in names if name in tensors), names[0])


def _vocabulary(
    given: CheckpointHints, tokens: list[str], symbols: Sequence[str], place: str, one: int
) -> RunVocabulary:
    """The vocabulary of the source (0) or the target (1): pieces of --subwords, or words between spaces."""
    special = special_of(tokens, symbols)
    if special.unknown < 0 or (one and min(special.start, special.end) < 0):
        raise CheckpointError(
            f"{place}: expected {', '.join(symbols[1:])} in the vocabulary of the "
            f"{'target' if one else 'source'}; fetch it again"
        )
    subwords = given_file(given.subwords, "subwords", one)
    if subwords is None:
        return TokenList(tokens, special, framed=False).words()
    if any(JOINER in token for token in tokens):
        raise ConfigError(
            f"{place}: its tokens have the joiner {JOINER} of OpenNMT's Tokenizer, which Weft lacks;  "
            "leave out --subwords, and give the run tokenised text"
        )
    return TokenList(tokens, special, framed=False).subwords(subwords)
