"""Import classifiers of texts: BERT, RoBERTa, XLM-R and DistilBERT with a layer on the first symbol.

Read next: bert.py, the encoder.
"""

from typing import NamedTuple

from weft.errors import ConfigError
from weft.importing.checkpoint import Checkpoint, fill, prefixed
from weft.importing.families.bert import FAMILIES, SPARE, body, settings
from weft.importing.names import plain, tensor
from weft.models import Labeller
from weft.nn.embed.tokens import Tokens
from weft.nn.encoders.transformer import TransformerEncoder
from weft.nn.heads.categorical import Categorical
from weft.nn.pools import First, Layer


class HeadNames(NamedTuple):
    """A family's names of the head's tensors."""

    layer: str
    activation: Layer
    output: str


_ROBERTA = HeadNames("classifier.dense", "tanh", "classifier.out_proj")
HEADS = {
    "bert": HeadNames("bert.pooler.dense", "tanh", "classifier"),
    "roberta": _ROBERTA,
    "xlm-roberta": _ROBERTA,
    "distilbert": HeadNames("pre_classifier", "relu", "classifier"),
}


def classifies(foreign: Checkpoint) -> bool:
    """Whether a checkpoint is a classifier of whole texts."""
    names = FAMILIES.get(foreign.setting("model_type"))
    return names is not None and names.classifier in (foreign.config.get("architectures") or [])


def classifier(foreign: Checkpoint) -> Labeller:
    """A `BertForSequenceClassification` or one of its relatives.

    Our tokens are multiplied by sqrt(D), so the table is divided by it.

    Source: Devlin et al. 2019; Liu et al. 2019 (RoBERTa); Sanh et al. 2019 (DistilBERT).
    """
    family = foreign.setting("model_type")
    names, head, own = FAMILIES[family], HEADS[family], settings(foreign)
    foreign = prefixed(
        foreign, names.prefix, *(name.partition(".")[0] for name in head if name != "bert.pooler.dense")
    )
    size, tokens = own["size"], foreign.setting("vocab_size")
    encoder = TransformerEncoder(size, **own)
    output = Categorical(size, len(classes(foreign)))
    model = Labeller(Tokens(tokens, size), encoder, output, pool=First(size, layer=head.activation))
    table = f"{names.entry}.word_embeddings.weight"
    origins = body(foreign, names, len(encoder.blocks)) | {
        **tensor("embed.table.weight", table, lambda rows: rows / size**0.5),
        **plain("pool.map", head.layer),
        **plain("head", head.output),
    }
    return fill(model, foreign, origins, spare=SPARE)


def classes(foreign: Checkpoint) -> list[str]:
    """The names of the classes, in the order of their numbers."""
    place, found = foreign.place, foreign.config.get("id2label") or {}
    usual = "single_label_classification"
    if (kind := foreign.config.get("problem_type") or usual) != usual:
        raise ConfigError(f"{place}: problem_type: expected {usual}, got {str(kind)[:60]}")
    bias = f"{HEADS[foreign.setting('model_type')].output}.bias"
    rows = [one for name, one in foreign.tensors.items() if name.endswith(bias)]
    count = len(rows[0]) if rows else len(found)
    names = [str(found.get(str(number), f"LABEL_{number}")) for number in range(count)]
    if count < 2 or len(set(names)) != count:
        raise ConfigError(
            f"{place}: id2label: expected at least two different classes, got {', '.join(names)[:80]}"
        )
    return names
