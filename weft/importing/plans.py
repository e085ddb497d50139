"""The run that a checkpoint of each family becomes: its recipe, its vocabularies and where their rows are.

Read next: runs.py, which writes the run; vocabularies.py.
"""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from torch import Tensor

from weft.importing import bert, gpt2, gpt_neox, llama, opt, t5, translators
from weft.importing.checkpoint import Foreign
from weft.importing.searches import searched, with_generation
from weft.importing.vocabularies import Found, of_pair, vocabulary, with_mask
from weft.importing.writing import TABLES, renumbered
from weft.text.vocabulary import EOS, SOS


class Plan(NamedTuple):
    """A run to be written."""

    recipe: dict[str, Any]
    found: Found  # the vocabularies
    prefix: str = ""  # of the model's tensors inside the task's model
    tables: tuple[str, ...] = TABLES  # in the imported model
    begins: bool = False  # </s> that is read is the model's symbol for the beginning of a text

    without: tuple[str, ...] = ()  # settings of a search that are not taken over

    def renumbered(self, state: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """The tensors of the task's model, with rows numbered like the vocabularies."""
        found = renumbered(state, self.found.order, tables=self.tables)
        if self.begins:
            for name in ("embed.table.weight", "source_embed.table.weight"):
                found[name][EOS] = found[name][SOS]
        return {f"{self.prefix}{name}": tensor for name, tensor in found.items()}


def translate(foreign: Foreign, data: dict[str, Any]) -> Plan:
    """A translator, from an encoder-decoder."""
    foreign = with_generation(foreign)
    of_t5 = foreign.setting("model_type") in t5.ARCHITECTURES
    parts = t5.sides(foreign) if of_t5 else translators.sides(foreign)
    most = foreign.setting("max_position_embeddings", default=129) if not of_t5 else 129
    found, (decoding, without) = of_pair(foreign, data["source"], data["target"]), searched(foreign)
    recipe = pair_recipe(
        data,
        {side: {"use": "transformer", **settings} for side, settings in parts.items()},
        {
            "size": foreign.setting("d_model"),
            "dropout": 0.0,
            "tied": not of_t5 or t5.is_tied(foreign),
            "scaled": bool(foreign.config.get("scale_embedding", False)) and not of_t5,
        },
        most=most,
        decoding=decoding,
    )
    return Plan(recipe, found, without=tuple(without))


def pair_recipe(
    data: dict[str, Any],
    model: dict[str, Any],
    embedding: dict[str, Any],
    *,
    most: int = 129,
    decoding: dict[str, Any] | None = None,
) -> dict[str, Any]:
    """The recipe of a translator whose two sides have tables and vocabularies of their own.

    Args:
        data: source, target, train and valid.
        model: the encoder and the decoder, and other settings of the section `model`.
        embedding: of both sides.
        most: positions that the model has, if they are limited.
        decoding: search settings.
    """
    recipe = {
        "task": "translate",
        "data": {
            **data,
            "vocabulary": {"shared": False},
            "max_length": min(128, most - 1),  # tokens; one position is for <sos>
        },
        "model": {**model, "embedding": {**embedding, "shared": False}},
        "training": {"max_epochs": 3},
    }
    return recipe | ({"decoding": decoding} if decoding else {})


def language(foreign: Foreign, data: dict[str, Any]) -> Plan:
    """A language model, from a decoder.

    The task reads </s> before a line. A model with another symbol for the beginning gets that symbol's vector
    there, and then its output layer has a table of its own.
    """
    decoder = DECODERS[foreign.setting("model_type")](foreign)
    found = vocabulary(foreign, "tokenizer.json")
    begins = found.order[2] != found.order[3]
    size = foreign.setting("word_embed_proj_dim", default=decoder["size"])
    recipe = {
        "task": "language",
        "data": {
            **data,
            "batches": "lines",
            "length": min(128, foreign.setting("n_positions", "max_position_embeddings")),
        },
        "model": {
            "decoder": {"use": "transformer", **decoder},
            "embedding": {
                "size": size,
                "dropout": foreign.setting("embd_pdrop", default=decoder["dropout"]),
                "scaled": False,
                "tied": not begins
                and bool(foreign.config.get("tie_word_embeddings", TIED[foreign.setting("model_type")])),
            },
        },
        "training": {"max_epochs": 3},
    }
    return Plan(recipe, found, begins=begins)


def masked(foreign: Foreign, data: dict[str, Any]) -> Plan:
    """A masked language model, from an encoder."""
    encoder = bert.settings(foreign)
    recipe = {
        "task": "masked",
        "data": {**data, "batches": "lines", "length": min(128, encoder["max_length"] - 2)},
        "model": {
            "encoder": {"use": "transformer", **encoder},
            "size": encoder["size"],
            "dropout": 0.0,
            "scaled": False,
            "norm_epsilon": encoder["norm_epsilon"],
        },
        "training": {"max_epochs": 3},
    }
    tables = ("embed.table.weight", "head.symbols.weight", "head.symbols.bias")
    return Plan(recipe, with_mask(foreign, "tokenizer.json"), prefix="predictor.", tables=tables)


TIED = {"gpt2": True, "opt": True, "gpt_neox": False} | dict.fromkeys(llama.ARCHITECTURES, False)
"""Whether a decoder's output layer uses the embedding table, if config.json does not say."""

DECODERS: dict[str, Callable[[Foreign], dict[str, Any]]] = {
    "gpt2": gpt2.settings,
    "opt": opt.settings,
    "gpt_neox": gpt_neox.settings,
    **dict.fromkeys(llama.ARCHITECTURES, llama.settings),
}
TRANSLATORS = (*translators.FORMS, *t5.ARCHITECTURES)

PLANS: dict[str, Callable[[Foreign, dict[str, Any]], Plan]] = {
    **dict.fromkeys(TRANSLATORS, translate),
    **dict.fromkeys(DECODERS, language),
    **dict.fromkeys(bert.FAMILIES, masked),
}
"""The plan for each `model_type` that becomes a run."""
