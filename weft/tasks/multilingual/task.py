"""One model for many language pairs: a symbol or words name the target language.

An encoder-decoder reads the symbol before the source; a decoder alone (`encoder: null`) reads source or
prompt itself and continues it, as a language model does. It can also translate pairs that were not trained.
Read next: data.py, the data; ready.py; ../translate/task.py, the same for one pair.
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, Literal

from weft.data.check import check
from weft.data.joined import JoinedStores
from weft.data.report import Report
from weft.data.store import TokenStore, content_key
from weft.errors import CheckpointError, ConfigError, within
from weft.nn.heads.head import Loss
from weft.store.cache import cache_directory
from weft.tasks.abilities import Direction
from weft.tasks.multilingual.data import ManyData
from weft.tasks.multilingual.evaluation import ManyEvaluation
from weft.tasks.multilingual.ready import ManyPipeline, ManyTraining
from weft.tasks.seq2seq.batch import collate_pairs
from weft.tasks.seq2seq.data import moved
from weft.tasks.seq2seq.decoding import ALIGNED, EVALUATED, Decoding
from weft.tasks.seq2seq.evaluation import BETTER
from weft.tasks.seq2seq.glossary import read_glossary
from weft.tasks.seq2seq.model import PairModel
from weft.tasks.seq2seq.reading import encode_pairs
from weft.tasks.seq2seq.space import decoding_space, space
from weft.tasks.space import Recipe, Space
from weft.tasks.task import SPLITS, Progress, Split, Task
from weft.text.loading import load_vocabulary
from weft.text.vocabulary import Vocabulary

VOCABULARY = "tokenizer.json"
REPEATED = 100
"""Copies of each prompt in the vocabulary's training text, so that it is split into few pieces."""


class Multilingual(Task):
    """Trains one translator on parallel text of several pairs.

    Args:
        data: the pairs, and how a source names its target language.
        model: encoder and decoder; `encoder: null` for a decoder alone.
        decoding: search settings for the trained model; validation is greedy.
    """

    sections: ClassVar[Mapping[str, type]] = {"data": ManyData, "model": PairModel, "decoding": Decoding}
    evaluation: ClassVar = ManyEvaluation
    better: ClassVar[Mapping[str, Literal["higher", "lower"]]] = BETTER
    options: ClassVar[Mapping[str, Sequence[str]]] = {
        "predict": (*ALIGNED, "split_sentences", "document", "source", "target"),
        "evaluate": (*EVALUATED, "lowercase", "glossary"),
    }
    note: ClassVar[str] = (
        "BLEU and chrF are means over the trained pairs of sacrebleu's scores on detokenised greedy output."
    )

    def __init__(self, *, data: ManyData, model: PairModel, decoding: Decoding) -> None:
        if decoding.shortlist:
            raise ConfigError("decoding.shortlist: needs a model of one direction; leave it out")
        if decoding.terms == "annotate":
            raise ConfigError("decoding.terms: annotate needs a model of one direction; leave it out")
        self.data = data
        self.model_config = model
        self.decoding = decoding

    def about(self) -> str:
        """The directions and the corpus."""
        return f"{', '.join(self.data.pairs)}, on {self.data.corpus or self.data.train}"

    @classmethod
    def search_space(cls, recipe: Recipe) -> Space:
        return space(recipe)

    @classmethod
    def decoding_space(cls, recipe: Recipe) -> Space:
        return decoding_space(recipe)

    def has(self, split: Split) -> bool:
        return self.data.of(self.data.pairs[0]).has(split)

    def rehearse(self) -> Loss:
        """Two pairs with a vocabulary of 19 tokens."""
        batch = collate_pairs([[17, 5, 6, 7], [18, 8]], [[9, 10], [11, 12, 13]])
        return self.model_config.build(19, 19, one_vocabulary=True).loss(batch)

    def corpora(self) -> Sequence[Direction]:
        every = (*self.data.pairs, *self.data.zero_shot)
        return [Direction(pair, self.data.of(pair), pair in self.data.pairs) for pair in every]

    def moved(self, folder: Path, train: str, *, tested: bool) -> Mapping[str, Any]:
        return moved(folder, train, tested=tested, inside="{pair}/")

    def check_ready(self) -> None:
        """Check that all files exist, and that the parts of the model fit together."""
        if self.decoding.glossary is not None:
            read_glossary(self.decoding.glossary)
        with within("model"):
            self.model_config.build(5, 5, one_vocabulary=True)
        for pair in self.data.pairs:
            for split in SPLITS:
                if self.data.of(pair).has(split):
                    self.data.of(pair).open(split)

    def prepare(self, run: Path, progress: Progress) -> ManyPipeline:
        """Learn the vocabulary unless the run has it, then open or build a token store for each pair."""
        path = run / VOCABULARY
        if not path.exists():
            progress("learning the vocabulary", 0, None)
            how = self.data.vocabulary
            Vocabulary.train(
                _text(self.data),
                kind=how.kind,
                size=how.size,
                min_count=how.min_count,
                form=how.form,
                lowercase=how.lowercase,
            ).save(path)
        vocabulary = load_vocabulary(path)
        stores = JoinedStores(
            [_stored(self.data, pair, path, vocabulary, progress) for pair in self.data.pairs]
        )
        valid = {pair: self.data.of(pair).complete("valid") for pair in self.data.pairs}
        return ManyPipeline(self, vocabulary, ManyTraining(self.data, vocabulary, stores, valid))

    def open(self, run: Path) -> ManyPipeline:
        """Read the vocabulary of the run."""
        if not (run / VOCABULARY).exists():
            raise CheckpointError(f"{run / VOCABULARY}: is missing; this is not a trained run")
        return ManyPipeline(self, load_vocabulary(run / VOCABULARY))

    @classmethod
    def check(cls, files: Sequence[Path]) -> Report:
        """Check parallel text; see weft/data/check.py."""
        return check(*files)


def _text(data: ManyData) -> Iterator[str]:
    """Each language once, from the first pair that has it, and the words of the prompts."""
    seen: set[str] = set()
    for pair in data.pairs:
        source, target = pair.split("-")
        for _, *sides in data.of(pair).open("train"):
            for language, side in zip((source, target), sides, strict=True):
                if language not in seen:
                    yield side
        seen |= {source, target}
    if data.prompt is not None:
        for pair in (*data.pairs, *data.zero_shot):
            source, target = pair.split("-")
            names = {"source": data.name(source), "target": data.name(target)}
            for _ in range(REPEATED):
                yield data.prompt.replace("{text}", "").format(**names)


def _stored(data: ManyData, pair: str, path: Path, vocabulary: Vocabulary, progress: Progress) -> TokenStore:
    """The token store of a pair; an existing one is opened."""
    train, asking = data.of(pair).open("train"), data.asking(vocabulary, *pair.split("-"))
    key = content_key(
        train.files,
        vocabularies=[path.read_text("utf-8")],
        max_length=data.max_length,
        languages=pair.split("-"),
        asking=[data.prompt, data.names, data.targets],
    )
    store = TokenStore.build(
        cache_directory() / "stores" / key[:32],
        train,
        partial(encode_pairs, asking, vocabulary),
        max_length=data.max_length,
        key=key,
        progress=lambda lines: progress(f"reading training pairs {pair}", lines, None),
    )
    progress(f"{pair}: {store.report['kept']:,} of {store.report['pairs']:,} training pairs kept", 0, 0)
    return store
