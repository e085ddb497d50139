"""The run that a checkpoint of each family becomes: its recipe, its vocabularies and where their rows are.

Read next: runs.py, which writes the run; vocabularies.py.
"""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from torch import Tensor

from weft.importing.checkpoint import LARGEST_CONFIG, Checkpoint, json_table
from weft.importing.families.decoders import (
    LLAMAS,
    gpt2_settings,
    gpt_neox_settings,
    llama_settings,
    opt_settings,
)
from weft.importing.families.encoder_decoders import FORMS, T5_ARCHITECTURES, is_t5_tied, sides, t5_sides
from weft.importing.families.encoders import (
    BERTS,
    HEADS,
    bert_settings,
    classes,
    classifies,
    modernbert_settings,
)
from weft.importing.vocabularies import RunVocabularies, of_pair, vocabulary, with_frame, with_mask
from weft.importing.writing import TABLES, renumbered
from weft.store import files
from weft.text.vocabulary import EOS, SOS


class ImportPlan(NamedTuple):
    """A run to be written."""

    recipe: dict[str, Any]
    found: RunVocabularies  # the vocabularies
    prefix: str = ""  # of the model's tensors inside the task's model
    tables: tuple[str, ...] = TABLES  # in the imported model
    begins: bool = False  # </s> that is read is the model's symbol for the beginning of a text

    without: tuple[str, ...] = ()  # settings of a search that are not taken over
    files: Mapping[str, bytes] = {}  # further files of the run

    def renumbered(self, state: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """The tensors of the task's model, with rows numbered like the vocabularies."""
        found = renumbered(state, dict.fromkeys(self.tables, self.found.order))
        if self.begins:
            for name in ("embed.table.weight", "source_embed.table.weight"):
                found[name][EOS] = found[name][SOS]
        # A classifier of a recipe has dropout around its pool.
        return {
            f"{self.prefix}{name}".replace("pool.map.", "pool.pool.map."): one for name, one in found.items()
        }


def translate(foreign: Checkpoint, data: dict[str, Any]) -> ImportPlan:
    """A translator, from an encoder-decoder."""
    source, target = data["source"], data["target"]
    foreign = with_generation(foreign, f"translation_{source}_to_{target}", "translation")
    return _pair(foreign, data, source, target, task="translate")


def summarise(foreign: Checkpoint, data: dict[str, Any]) -> ImportPlan:
    """A summariser, from an encoder-decoder; it reads as much of a text as the model has positions for.

    Source and target are the languages of a model whose texts have a symbol of theirs; others have none.
    """
    source, target = data["source"] or "", data["target"] or data["source"] or ""
    foreign = with_generation(foreign, "summarization")
    columns = {"source": "text", "target": "summary"}
    plan = _pair(foreign, data | columns, source, target, task="summarise", longest=_positions(foreign))
    settings = plan.recipe["data"]
    settings["cut_source"] = settings["max_length"]
    return plan


def _positions(foreign: Checkpoint) -> int:
    """Positions of an encoder-decoder; those of T5 are not limited, but it was trained with so many."""
    return int(foreign.setting("max_position_embeddings", "n_positions", default=512))


def _pair(
    foreign: Checkpoint, data: dict[str, Any], source: str, target: str, *, task: str, longest: int = 128
) -> ImportPlan:
    of_t5 = foreign.setting("model_type") in T5_ARCHITECTURES
    parts = t5_sides(foreign) if of_t5 else sides(foreign)
    found, (decoding, without) = of_pair(foreign, source, target), searched(foreign)
    if (prefix := foreign.config.get("prefix") or "").strip() and not found.prefix:
        without.append(f"prefix {prefix[:40]!r}")
    recipe = pair_recipe(
        data,
        {side: {"use": "transformer", **settings} for side, settings in parts.items()},
        {
            "size": foreign.setting("d_model"),
            "dropout": 0.0,
            "tied": not of_t5 or is_t5_tied(foreign),
            "scaled": bool(foreign.config.get("scale_embedding", False)) and not of_t5,
        },
        most=_positions(foreign),
        decoding=decoding,
        task=task,
        longest=longest,
    )
    return ImportPlan(recipe, found, without=tuple(without))


def pair_recipe(
    data: dict[str, Any],
    model: dict[str, Any],
    embedding: dict[str, Any],
    *,
    most: int = 129,
    decoding: dict[str, Any] | None = None,
    task: str = "translate",
    longest: int = 128,
) -> dict[str, Any]:
    """The recipe of a translator or summariser whose two sides have tables and vocabularies of their own."""
    recipe = {
        "task": task,
        "data": {
            **data,
            "vocabulary": {"shared": False},
            "max_length": min(longest, most - 1),  # tokens; one position is for <sos>
        },
        "model": {**model, "embedding": {**embedding, "shared": False}},
        "training": {"max_epochs": 3},
    }
    return recipe | ({"decoding": decoding} if decoding else {})


WINDOW = 1024  # maximum tokens of the windows that a language model is trained and evaluated on
BATCH = 2560  # tokens of a batch of these windows


def language(foreign: Checkpoint, data: dict[str, Any]) -> ImportPlan:
    """A language model, from a decoder.

    The task may read </s> before a line. A model with another symbol for the beginning gets that
    symbol's vector there, and then its output layer has a table of its own.
    """
    family = foreign.setting("model_type")
    decoder, found = DECODERS[family](foreign), vocabulary(foreign)
    begins = found.order[2] != found.order[3]
    size = foreign.setting("word_embed_proj_dim", default=decoder["size"])
    length = min(WINDOW, foreign.setting("n_positions", "max_position_embeddings"))
    recipe = {
        "task": "language",
        "data": {**data, "batches": "windows", "length": length, "batch_rows": max(1, BATCH // length)},
        "model": {
            "decoder": {"use": "transformer", **decoder},
            "embedding": {
                "size": size,
                "dropout": foreign.setting("embd_pdrop", default=decoder["dropout"]),
                "scaled": family in SCALED,
                "tied": not begins and bool(foreign.config.get("tie_word_embeddings", family in TIED)),
            },
        },
        "training": {"max_epochs": 3},
    }
    return ImportPlan(recipe, found, begins=begins)


def labelled(foreign: Checkpoint, data: dict[str, Any]) -> ImportPlan:
    """A classifier of texts, which are read with the tokenizer's own symbols around them."""
    side, names = bert_settings(foreign), classes(foreign)
    layer = HEADS[foreign.setting("model_type")].activation
    recipe = {
        "task": "classify",
        "data": {**data, "max_length": side["max_length"]},
        "model": {
            "encoder": {"use": "transformer", **side},
            "pool": {"use": "first", "layer": layer},
            "embedding": {"size": side["size"], "dropout": 0.0},
            "dropout": side["dropout"],
        },
        "training": {"max_epochs": 3},
    }
    content = files.to_json({"classes": names, "items": []})
    tables, known = ("embed.table.weight",), with_frame(foreign)
    return ImportPlan(recipe, known, tables=tables, files={"tokenizer.classes.json": content})


def encoder(foreign: Checkpoint, data: dict[str, Any]) -> ImportPlan:
    """A classifier or a masked language model, from an encoder."""
    return (labelled if classifies(foreign) else masked)(foreign, data)


def masked(foreign: Checkpoint, data: dict[str, Any]) -> ImportPlan:
    """A masked language model, from an encoder."""
    of_bert = foreign.setting("model_type") in BERTS
    encoder = bert_settings(foreign) if of_bert else modernbert_settings(foreign)
    recipe = {
        "task": "masked",
        "data": {**data, "batches": "lines", "length": min(128, encoder.get("max_length", 130) - 2)},
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
    return ImportPlan(recipe, with_mask(foreign), prefix="predictor.", tables=tables)


TIED = ("gpt2", "opt", "gemma")
"""Decoders whose output layer uses the embedding table, if config.json does not say."""

SCALED = ("gemma",)  # decoders whose embeddings are multiplied by the root of their width
DECODERS: dict[str, Callable[[Checkpoint], dict[str, Any]]] = {
    "gpt2": gpt2_settings,
    "opt": opt_settings,
    "gpt_neox": gpt_neox_settings,
    **dict.fromkeys(LLAMAS, llama_settings),
}
TRANSLATORS = (*FORMS, *T5_ARCHITECTURES)

PAIRS: dict[str, Callable[[Checkpoint, dict[str, Any]], ImportPlan]] = {
    "translate": translate,
    "summarise": summarise,
}
"""The tasks of an encoder-decoder; the first is the usual one."""

PLANS: dict[str, Callable[[Checkpoint, dict[str, Any]], ImportPlan]] = {
    **dict.fromkeys(TRANSLATORS, translate),
    **dict.fromkeys(DECODERS, language),
    **dict.fromkeys(BERTS, encoder),
    "modernbert": masked,
}
"""The plan for each `model_type` that becomes a run."""


FILE = "generation_config.json"
OF_TASKS = "task_specific_params"
SYMBOLS = ("pad_token_id", "bos_token_id", "eos_token_id")
OFF: dict[str, Any] = {
    "repetition_penalty": 1.0,
    "encoder_no_repeat_ngram_size": 0,
    "encoder_repetition_penalty": 1.0,
    "exponential_decay_length_penalty": None,
    "forced_decoder_ids": None,
    "begin_suppress_tokens": None,
    "sequence_bias": None,
    "force_words_ids": None,
    "constraints": None,
    "penalty_alpha": None,
    "guidance_scale": 1.0,
    "epsilon_cutoff": 0.0,
    "eta_cutoff": 0.0,
    "dola_layers": None,
    "max_time": None,
    "stop_strings": None,
}
"""Settings that cannot be taken over, and the values that turn them off."""

SAMPLED = {"temperature": 1.0, "top_k": 50, "top_p": 1.0, "min_p": 0.0, "typical_p": 1.0}
"""Settings of sampling that have the same name, and the values of `generate` for those not given."""

STOPS = {True: "full", False: "worst", None: "worst", "never": "never"}
"""Our `stop` for each `early_stopping`."""


class SearchDefaults(NamedTuple):
    """How the model searches."""

    decoding: dict[str, Any]
    without: list[str]  # settings that are not taken over


def with_generation(foreign: Checkpoint, *tasks: str) -> Checkpoint:
    """The checkpoint with its settings of `generate` in its configuration.

    Those of generation_config.json are preferred to those of config.json, and those that config.json has for
    a task (`task_specific_params`) to both.
    """
    path = foreign.path / FILE
    found = json_table(path, LARGEST_CONFIG) if path.is_file() else {}
    own = {name: foreign.config[name] for name in SYMBOLS if foreign.config.get(name) is not None}
    known = foreign.config.get(OF_TASKS)
    of_tasks = [known[task] for task in tasks if isinstance(known, dict) and task in known]
    asked = of_tasks[0] if of_tasks and isinstance(of_tasks[0], dict) else {}
    return foreign._replace(config=foreign.config | found | own | asked)


def searched(foreign: Checkpoint) -> SearchDefaults:
    """The search settings of a checkpoint that `with_generation` returned."""
    return _Reading(foreign.config).searched()


class _Reading:
    """Reads settings of `generate`, and collects those that cannot be taken over."""

    def __init__(self, config: dict[str, Any]) -> None:
        self._config = config
        self._without: list[str] = []

    def searched(self) -> SearchDefaults:
        for name, off in OFF.items():
            if self._config.get(name) not in (None, off):
                self._leave_out(name)
        self._check_symbols()
        decoding = self._kind() | self._lengths()
        if repeat := self._number("no_repeat_ngram_size", 1, 1000):
            decoding["no_repeat_ngram"] = repeat
        if self._config.get("renormalize_logits") and {"no_repeat_ngram", "min_length"} & decoding.keys():
            self._leave_out("renormalize_logits")
        return SearchDefaults(decoding, self._without)

    def _kind(self) -> dict[str, Any]:
        """Sampling, greedy or beam search, with its own settings."""
        beam = self._number("num_beams", 1, 1000) or 1
        if self._config.get("do_sample"):
            if beam == 1:
                return self._sampling()
            self._leave_out("do_sample")
        if beam == 1:
            return {"search": "greedy"}
        decoding: dict[str, Any] = {"search": "beam", "beam": beam}
        early, penalty = self._config.get("early_stopping"), self._config.get("length_penalty")
        if isinstance(early, bool | None) or early == "never":
            decoding["stop"] = STOPS[early]
        else:
            self._leave_out("early_stopping")
        if isinstance(penalty, int | float) and 0 <= penalty <= 10:
            decoding["length_penalty"] = float(penalty)
        elif penalty is not None:
            self._leave_out("length_penalty")
        groups = self._number("num_beam_groups", 2, beam)
        if groups and beam % groups == 0:
            decoding |= {"diverse": groups, "diversity": self._config.get("diversity_penalty") or 0.0}
        elif groups:
            self._leave_out("num_beam_groups")
        return decoding

    def _sampling(self) -> dict[str, Any]:
        decoding: dict[str, Any] = {"search": "sample"}
        for name, usual in SAMPLED.items():
            value = self._config.get(name)
            decoding[name] = usual if value is None else value
        return decoding

    def _lengths(self) -> dict[str, Any]:
        """Limits of the output; their `max_length` and `min_length` count the decoder's first input."""
        decoding: dict[str, Any] = {}
        least = max(
            (self._number("min_length", 1, 1000) or 1) - 1, self._number("min_new_tokens", 1, 1000) or 0
        )
        if least:
            decoding["min_length"] = least
        most = self._number("max_new_tokens", 1, 100_000) or (self._number("max_length", 2, 100_001) or 1) - 1
        if most:
            decoding |= {"max_ratio": 0.0, "max_extra": most}
        return decoding

    def _check_symbols(self) -> None:
        """Say which tokens are forbidden or forced, beside those that are never or always written."""
        special = {self._config.get(name) for name in (*SYMBOLS, "decoder_start_token_id")}
        suppressed, words = self._config.get("suppress_tokens"), self._config.get("bad_words_ids")
        if suppressed and not set(suppressed) <= special:
            self._leave_out("suppress_tokens")
        if words and not all(len(word) == 1 and word[0] in special for word in words):
            self._leave_out("bad_words_ids")
        end = self._config.get("forced_eos_token_id")
        if end is not None and end != self._config.get("eos_token_id"):
            self._leave_out("forced_eos_token_id")

    def _number(self, name: str, least: int, most: int) -> int | None:
        value = self._config.get(name)
        if value is None or value == least - 1:  # not given, or turned off
            return None
        if isinstance(value, int) and least <= value <= most:
            return value
        self._leave_out(name)
        return None

    def _leave_out(self, name: str) -> None:
        self._without.append(f"{name} {str(self._config[name])[:40]}")
