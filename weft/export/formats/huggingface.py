"""The `transformers` library: a directory that AutoModel… and AutoTokenizer load.

Read next: ../transformers_models.py.
"""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

import safetensors.torch
import torch
from torch import Tensor

from weft.errors import ConfigError, ExportError
from weft.export.format import Format
from weft.export.formats.tokenizer import ODD, check_numbers, settings, tokenizer_json
from weft.export.network import COUNT, TransformerNetwork, check_search, compare, network, sources
from weft.export.transformers_models import LibraryModel, bert, causal, family, pair
from weft.models import Labeller
from weft.nn.heads.transformed import Transformed
from weft.run import LoadedRun
from weft.search.offered import Decoding, Narrowing, SearchSettings, offers
from weft.text.vocabulary import EOS, PAD, SOS, UNK, Vocabulary

TO = "huggingface"
BANNED = [PAD, UNK, SOS]
MASK = "[MASK]"
NEAR = 1e-4  # nats; float32 in another order


class HuggingFace(Format):
    """A directory with config.json, model.safetensors, the tokenizer and a model card."""

    about: ClassVar[str] = "transformers: Transformers as Marian, Pegasus, BART, GPT-2, Llama or BERT"
    packages: ClassVar[Sequence[str]] = ("transformers",)

    def check(self, opened: LoadedRun, int8: bool | None) -> None:
        if int8:
            raise ConfigError(
                "--int8: --to huggingface expects float32, got 8 bits; use --to ctranslate2 or --to onnx"
            )
        masked = _masked(opened)
        if masked is not None:
            bert(masked)
            tokenizer_json(_vocabulary(opened), TO)
            return
        found = network(opened, TO)
        check_search(opened, TO)
        if found.encoder is not None:
            family(found)
        else:
            causal(found)
        tokenizer_json(found.target, TO)

    def write(self, opened: LoadedRun, folder: Path, int8: bool | None) -> Sequence[str]:
        texts, masked = sources(opened), _masked(opened)
        if masked is not None:
            vocabulary = _vocabulary(opened)
            _save(folder, bert(masked), vocabulary, framed=True)
            count = _check_tokenizer(folder, vocabulary, texts)
            nats = _compare_masked(folder, masked, vocabulary, texts)
            lines = [f"log-probabilities of {COUNT} texts in one batch: at most {nats:.1e} nats from Weft's"]
        else:
            found = network(opened, TO)
            made = pair(found) if found.encoder is not None else causal(found)
            _save(folder, made, found.target, cut=found.cut, begins=found.encoder is None)
            (folder / "generation_config.json").write_text(json.dumps(_generation(found), indent=2))
            count = _check_tokenizer(folder, found.target, texts)
            lines = compare(found, texts, Library(found, folder)).lines(found.how)
        (folder / "README.md").write_text(_card(opened, masked is not None), "utf-8")
        kind = json.loads((folder / "config.json").read_text())["architectures"][0]
        size = (folder / "model.safetensors").stat().st_size
        return [
            f"{kind}: model.safetensors {size / 1e6:.2f} MB",
            f"AutoTokenizer: {count} texts give Weft's tokens",
            *lines,
            *check_search(opened, TO),
        ]


class Library:
    """The exported model, run by the transformers library."""

    def __init__(self, network: TransformerNetwork, folder: Path) -> None:
        import transformers

        self._pair = network.encoder is not None
        kind = transformers.AutoModelForSeq2SeqLM if self._pair else transformers.AutoModelForCausalLM
        self._model = _loaded(kind, folder)

    @torch.no_grad()
    def search(self, row: Sequence[int], how: SearchSettings, limit: int) -> list[int]:
        """See ExportedModel."""
        row = list(row) if self._pair else [EOS, *row]
        found = self._model.generate(
            torch.tensor([row]),
            attention_mask=torch.ones(1, len(row), dtype=torch.long),
            **{**options(how), "max_length": None, "max_new_tokens": limit},
        )[0].tolist()
        written = found[1:] if self._pair else found[len(row) :]
        return written[: written.index(EOS)] if EOS in written else written

    @torch.no_grad()
    def logp(self, rows: Sequence[Sequence[int]], targets: Sequence[Sequence[int]]) -> list[Tensor]:
        """See ExportedModel."""
        counts = [len(target) + 1 for target in targets]
        if self._pair:
            source, target = _padded(rows), _padded([[SOS, *target] for target in targets])
            logits = self._model(input_ids=source[0], attention_mask=source[1], decoder_input_ids=target[0])
            begins = [0 for _ in rows]
        else:
            joined = [[EOS, *row, *target] for row, target in zip(rows, targets, strict=True)]
            tokens, mask = _padded(joined)
            logits, begins = self._model(input_ids=tokens, attention_mask=mask), [len(row) for row in rows]
        every = logits.logits.log_softmax(-1)
        return [
            every[number, begin : begin + count]
            for number, (begin, count) in enumerate(zip(begins, counts, strict=True))
        ]


def _loaded(kind: Any, folder: Path) -> Any:
    """A model of the library from its files alone, all of whose tensors are there."""
    import transformers

    transformers.utils.logging.disable_progress_bar()
    model, about = kind.from_pretrained(str(folder), local_files_only=True, output_loading_info=True)
    wrong = [name for key in ("missing_keys", "unexpected_keys", "mismatched_keys") for name in about[key]]
    if wrong:
        raise ExportError(
            f"the transformers library expects other tensors than were written ({wrong[0]}); "
            "please report this run's recipe"
        )
    return model.eval()


def _padded(rows: Sequence[Sequence[int]]) -> tuple[Tensor, Tensor]:
    """Rows side by side, padded at the end, and their mask."""
    parts = [torch.tensor(row) for row in rows]
    tokens = torch.nn.utils.rnn.pad_sequence(parts, batch_first=True, padding_value=PAD)
    lengths = torch.tensor([len(row) for row in rows])
    return tokens, (torch.arange(tokens.shape[1]) < lengths[:, None]).long()


def _masked(opened: LoadedRun) -> Labeller | None:
    """The model that fills gaps, if this is one."""
    inner = getattr(opened.model, "predictor", None)
    return inner if isinstance(inner, Labeller) and isinstance(inner.head, Transformed) else None


def _vocabulary(opened: LoadedRun) -> Vocabulary:
    found: Any = opened.pipeline
    return found.vocabulary  # type: ignore[no-any-return]


def _save(
    folder: Path,
    made: LibraryModel,
    vocabulary: Vocabulary,
    *,
    cut: int | None = None,
    begins: bool = False,
    framed: bool = False,
) -> None:
    """config.json, model.safetensors, tokenizer.json and tokenizer_config.json."""
    tensors = {name: tensor.detach().float().contiguous().clone() for name, tensor in made.tensors.items()}
    safetensors.torch.save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
    config = made.config | {"dtype": "float32", "torch_dtype": "float32"}
    (folder / "config.json").write_text(json.dumps(config, indent=2))
    begin = "<sos>" if framed else "<eos>" if begins else None
    content = tokenizer_json(vocabulary, TO, begin=begin, end="<eos>" if framed else None)
    length = config.get("max_position_embeddings") or config["n_positions"]
    about = settings(begins=begins) | {"model_max_length": cut or length}
    if framed:  # not declared as mask_token, which would be split like the other symbols
        content["added_tokens"].append(
            {
                "id": len(vocabulary),
                "content": MASK,
                "single_word": False,
                "lstrip": False,
                "rstrip": False,
                "normalized": False,
                "special": False,
            }
        )
    (folder / "tokenizer.json").write_text(json.dumps(content, ensure_ascii=False), "utf-8")
    (folder / "tokenizer_config.json").write_text(json.dumps(about, indent=2))


def _check_tokenizer(folder: Path, vocabulary: Vocabulary, texts: list[str]) -> int:
    """AutoTokenizer gives Weft's numbers, and its text for them."""
    import transformers

    content = json.loads((folder / "tokenizer.json").read_text("utf-8"))
    check_numbers(vocabulary, content, texts)
    made = transformers.AutoTokenizer.from_pretrained(str(folder), local_files_only=True)
    every = [*texts, *ODD]
    for text, row in zip(every, vocabulary.encode_batch(every), strict=True):
        theirs = made(text, add_special_tokens=False)["input_ids"]
        back = made.decode([SOS, *row, EOS], skip_special_tokens=True)
        if theirs != row or back != vocabulary.decode(row):
            raise ExportError(
                f"AutoTokenizer gives {theirs[:8]} and {back[:40]!r} for {text[:40]!r}, expected Weft's "
                f"{row[:8]} and {vocabulary.decode(row)[:40]!r}; please report this text"
            )
    return len(every)


def _compare_masked(folder: Path, model: Labeller, vocabulary: Vocabulary, texts: list[str]) -> float:
    """The largest difference of a log-probability in texts with gaps."""
    import transformers

    rows = [row for row in vocabulary.encode_batch(texts) if row][:COUNT]
    gaps = [[SOS, *row[:30], EOS] for row in rows]
    for number, row in enumerate(gaps):
        row[1 + number % (len(row) - 2)] = len(vocabulary)
    tokens, mask = _padded(gaps)
    theirs = _loaded(transformers.AutoModelForMaskedLM, folder)
    with torch.no_grad():
        found = theirs(input_ids=tokens, attention_mask=mask).logits.log_softmax(-1)
        ours = model(tokens, mask.bool())
    nats = float((found - ours)[mask.bool()].abs().max())
    if nats > NEAR:
        raise ExportError(f"log-probabilities differ from Weft's by {nats:.1e} nats, expected at most {NEAR}")
    return nats


def _generation(found: TransformerNetwork) -> dict[str, Any]:
    """The recipe's search."""
    return {
        **({"decoder_start_token_id": SOS} if found.encoder is not None else {}),
        "bos_token_id": SOS if found.encoder is not None else EOS,
        "eos_token_id": EOS,
        "pad_token_id": PAD,
        "suppress_tokens": BANNED,
        "max_length": found.length,
        **options(found.how),
    }


EARLY = {"best": False, "full": True, "worst": False, "never": "never"}
"""`early_stopping` for each `stop`; there is none for best, the default."""


def options(how: SearchSettings) -> dict[str, Any]:
    """The run's search as settings of `generate`."""
    found: dict[str, Any] = {"num_beams": how.beam if how.search == "beam" else 1, "do_sample": False}
    if how.search == "beam":
        stop = how.stop if isinstance(how, Decoding) else "best"
        found |= {"length_penalty": how.length_penalty, "early_stopping": EARLY[stop]}
    if how.search == "sample":
        found |= {"do_sample": True, **{name: getattr(how, name) for name in offers(Narrowing)}}
    if isinstance(how, Decoding):
        found |= {"no_repeat_ngram_size": how.no_repeat_ngram} if how.no_repeat_ngram else {}
        found |= {"min_new_tokens": how.min_length} if how.min_length else {}
        found |= {"max_new_tokens": how.max_extra} if not how.max_ratio else {}
    else:
        found["max_new_tokens"] = getattr(how, "max_tokens", 100)
    return found


def _card(opened: LoadedRun, masked: bool) -> str:
    """The model card: how to use the model here, and what the run's own card says."""
    seq2seq = getattr(opened.model, "encoder", None) is not None
    tag, kind, text, use = (
        ("fill-mask", "MaskedLM", f"The {MASK} of a file", "logits = model(**inputs).logits")
        if masked
        else ("translation", "Seq2SeqLM", "A text to read.", "written = model.generate(**inputs)")
        if seq2seq
        else ("text-generation", "CausalLM", "The file", "written = model.generate(**inputs)")
    )
    shown = "tokenizer.batch_decode(written, skip_special_tokens=True)" if not masked else "logits.argmax(-1)"
    own = opened.path / "README.md"
    rest = own.read_text("utf-8") if own.is_file() else ""
    return f"""---
library_name: transformers
pipeline_tag: {tag}
---

In this folder, with the `transformers` library and PyTorch installed:

```python
from transformers import AutoModelFor{kind}, AutoTokenizer

tokenizer = AutoTokenizer.from_pretrained(".")
model = AutoModelFor{kind}.from_pretrained(".")
inputs = tokenizer(["{text}"], return_tensors="pt", padding=True, truncation=True)
{use}
print({shown})
```

Exported by Weft. A blank text has no token and cannot be read.

{rest}"""
