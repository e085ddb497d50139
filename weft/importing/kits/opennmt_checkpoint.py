"""A checkpoint of OpenNMT-py: options, vocabularies and tensors in a file of torch.save.

3.x can keep the tensors in a .safetensors beside it. 2.x describes its vocabularies with objects, of which
only the data are read. Read next: opennmt.py; ../torchfile.py.
"""

import glob
import re
from pathlib import Path
from typing import Any, NamedTuple

from torch import Tensor

from weft.errors import CheckpointError, ConfigError
from weft.importing import torchfile
from weft.importing.checkpoint import safe_tensors
from weft.importing.kits.reading import rate, table, tensors

PAD, UNKNOWN, START, END = "<blank>", "<unk>", "<s>", "</s>"


class OpenNMTModel(NamedTuple):
    """What is read from a checkpoint of OpenNMT-py."""

    options: dict[str, Any]
    tensors: dict[str, Tensor]
    tokens: tuple[list[str], list[str]]  # of the source and the target
    start: str  # the token before a target
    place: str

    @property
    def dropout(self) -> float:
        """The rate, or the first of a schedule."""
        return self.rate("dropout", 0.0)

    def rate(self, name: str, usual: float) -> float:
        """A dropout rate, which may be a list with one for each stage of training."""
        return rate(self.options, name, self.place, usual)


def checkpoint(path: Path) -> OpenNMTModel:
    """Read a checkpoint.

    Raises:
        CheckpointError: it is damaged, or not OpenNMT-py's.
        ConfigError: words have features.
    """
    place = str(path)
    content = torchfile.read_torch_file(path)
    options = table(content, "opt", place)
    vocabulary = table(content, "vocab", place)
    if "model" in content:
        found = tensors(content, "model", place)
        head = tensors(content, "generator", place)
        found |= {f"generator.{name.removeprefix('0.')}": one for name, one in head.items()}
    else:
        found = _beside(path)
    if vocabulary.get("src_feats"):
        raise ConfigError(
            f"{place}: src_feats: expected none, got features of source words, which Weft does not support"
        )
    tokens = _tokens(vocabulary, "src", place), _tokens(vocabulary, "tgt", place)
    renamed = {_renamed(name): one for name, one in found.items()}
    return OpenNMTModel(options, renamed, tokens, str(vocabulary.get("decoder_start_token", START)), place)


def _beside(path: Path) -> dict[str, Tensor]:
    """The tensors of the files beside a checkpoint: its name and .safetensors, or .00.safetensors and so on.

    OpenNMT-py writes the first and reads the second.
    """
    files = [path.with_suffix(".safetensors")]
    if not files[0].is_file():
        numbered = sorted(path.parent.glob(f"{glob.escape(path.stem)}.*.safetensors"))
        files = numbered or files
    found: dict[str, Tensor] = {}
    for file in files:
        found |= tensors(safe_tensors(file), "", str(file))
    return found


def _renamed(name: str) -> str:
    """A tensor's name in 2.x and 3.x; before, norms had their own names for weights and biases."""
    return re.sub(r"\.b_2$", ".bias", re.sub(r"\.a_2$", ".weight", name))


def _tokens(vocabulary: dict[str, Any], side: str, place: str) -> list[str]:
    """The tokens of a side; in 2.x they are part of a description of how to read a text."""
    found = vocabulary.get(side)
    if isinstance(found, dict):
        fields = found.get("fields")
        if isinstance(fields, list) and len(fields) > 1:
            raise ConfigError(f"{place}: expected words without features, which Weft lacks, got some")
        try:
            found = fields[0][1]["vocab"]["itos"]  # type: ignore[index]
        except (TypeError, KeyError, IndexError):
            found = None
    if not isinstance(found, list) or not all(isinstance(one, str) for one in found):
        raise CheckpointError(
            f"{place}: expected a list of tokens in vocab.{side}, got {type(found).__name__}; fetch it again"
        )
    return found
