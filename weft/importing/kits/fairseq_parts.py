"""What a fairseq checkpoint contains, and what its Transformers and LSTMs have in common.

Read next: fairseq.py.
"""

import re
from typing import Any, NamedTuple

from torch import Tensor

from weft.errors import ConfigError
from weft.importing.kits.reading import choice, layers, number

Settings = dict[str, str | int | float | bool | None]

OFF = (
    "adaptive_input",
    "no_cross_attention",
    "cross_self_attention",
    "char_inputs",
    "base_layers",
    "quant_noise_pq",
    "no_decoder_final_norm",
    "encoder_layers_to_keep",
    "decoder_layers_to_keep",
    "scale_attn",
    "scale_fc",
    "scale_heads",
    "scale_resids",
)
"""Settings that Weft's parts cannot express."""

FUSED = re.compile(r"encoder\.layers\.\d+\.(in_proj|out_proj|fc1|fc2)_(weight|bias)")
"""Unused tensors of fairseq 0.12.2, which overwrites them with those of the layer when it reads them."""

OLD_NORMS = {
    "encoder": ("self_attn_layer_norm", "final_layer_norm"),
    "decoder": ("self_attn_layer_norm", "encoder_attn_layer_norm", "final_layer_norm"),
}
"""What `layer_norms.N` is called since 2018."""


class FairseqCheckpoint(NamedTuple):
    """What is read from a checkpoint of fairseq: settings, and weights by name."""

    settings: Settings
    state: dict[str, Tensor]
    place: str

    def number(self, name: str, usual: float | None = None) -> Any:
        """A number among the settings."""
        return number(self.settings, name, self.place, usual=usual)

    def layers(self, side: str, usual: int) -> int:
        """How many layers a side has."""
        return layers(self.settings, f"{side}_layers", self.place, len(self.state), usual=usual)

    def flag(self, name: str) -> bool:
        """A switch among the settings."""
        return bool(self.settings.get(name))

    def same(self, name: str, usual: float) -> Any:
        """A number that a recipe has once and fairseq for each side.

        Raises:
            ConfigError: the sides differ.
        """
        found = [self.number(f"{side}_{name}", usual) for side in ("encoder", "decoder")]
        if found[0] != found[1]:
            raise ConfigError(
                f"{self.place}: {name}: expected the same for encoder and decoder, got {found[0]} and "
                f"{found[1]}, which Weft does not support"
            )
        return found[0]


def check_fairseq(found: FairseqCheckpoint) -> None:
    """Refuse settings that Weft's parts cannot express.

    Raises:
        ConfigError: the first such setting, with its value.
    """
    choice(found.settings, "task", found.place, "translation")
    for setting in OFF:
        if found.flag(setting):
            raise ConfigError(
                f"{found.place}: {setting}: expected none, got {found.settings[setting]}, "
                "which Weft cannot express"
            )
    if any(".adaptive_softmax." in each for each in found.state):
        raise ConfigError(
            f"{found.place}: adaptive_softmax_cutoff: expected a plain softmax, got an adaptive one, "
            "which Weft cannot express"
        )


def renamed(state: dict[str, Tensor]) -> dict[str, Tensor]:
    """The tensors with the names of fairseq 0.12, as its `upgrade_state_dict` gives them."""
    found: dict[str, Tensor] = {}
    for name, one in state.items():
        if FUSED.fullmatch(name):
            continue
        begin, _, end = name.rpartition(".in_proj_")
        if begin and end in ("weight", "bias"):
            parts = zip("qkv", one.chunk(3), strict=False)
            found |= {f"{begin}.{letter}_proj.{end}": part for letter, part in parts}
        else:
            found[_modern(name)] = one
    return found


def _modern(name: str) -> str:
    pieces = name.split(".")
    if len(pieces) == 6 and pieces[3] == "layer_norms" and pieces[0] in OLD_NORMS and pieces[4] in "012":
        norms = OLD_NORMS[pieces[0]]
        if int(pieces[4]) < len(norms):
            return ".".join([*pieces[:3], norms[int(pieces[4])], pieces[5]])
    return "decoder.output_projection.weight" if name == "decoder.embed_out" else name
