"""M4, one model for many language pairs: with a symbol for the language that is wanted, or asked in words.

An encoder-decoder reads the symbol before the source; a decoder alone (`encoder: null`) reads source or
prompt itself and continues it, as a language model does. Pairs that were never trained can be asked for.
Read next: data.py, the data; ../translate/task.py, the same for one pair; ../data/mixture.py.
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO, ClassVar, Literal

import numpy as np
from torch import nn

from weft.cache import cache_directory
from weft.data.check import check
from weft.data.joined import Joined
from weft.data.mixture import Mixture
from weft.data.parallel import complete
from weft.data.report import Report
from weft.data.store import TokenStore, content_key
from weft.errors import CheckpointError, ConfigError, within
from weft.metrics.bleu import Bleu
from weft.metrics.chrf import Chrf
from weft.metrics.compared import of_lines
from weft.models import Generator
from weft.nn.heads.head import Loss
from weft.tasks.multilingual.data import Asking, ManyData
from weft.tasks.multilingual.evaluation import ManyEvaluation, together
from weft.tasks.multilingual.predictor import ManyTranslator
from weft.tasks.ready import SPLITS, Ready, Split
from weft.tasks.shared.writing.batch import PairBatch, collate_pairs
from weft.tasks.shared.writing.decoding import Decoding
from weft.tasks.shared.writing.evaluation import evaluate, loss_of_pairs
from weft.tasks.shared.writing.members import joined, pieces
from weft.tasks.shared.writing.model import PairModel
from weft.tasks.shared.writing.reading import encode_pairs
from weft.tasks.shared.writing.scoring import GivenScores, perplexity, score_file
from weft.tasks.shared.writing.translator import answers
from weft.tasks.task import Progress
from weft.tasks.translate.task import Translate
from weft.tasks.validation import Sample, Validation, samples_of
from weft.tasks.whole import Answer, Whole
from weft.text.vocabulary import Vocabulary


class Multilingual(Whole):
    """Parallel text of several pairs to one translator.

    Args:
        data: the pairs, and how a source says what is wanted.
        model: which encoder and decoder; `encoder: null` for a decoder alone.
        decoding: how translations are searched once the model is trained; validation is greedy.
    """

    sections: ClassVar[Mapping[str, type]] = {"data": ManyData, "model": PairModel, "decoding": Decoding}
    linewise: ClassVar[bool] = True
    evaluation: ClassVar = ManyEvaluation
    better: ClassVar[Mapping[str, Literal["higher", "lower"]]] = Translate.better
    options: ClassVar[Mapping[str, Sequence[str]]] = {
        "predict": (*Translate.options["predict"], "source", "target"),
        "evaluate": Translate.options["evaluate"],
    }
    note: ClassVar[str] = (
        "BLEU and chrF are means over the trained pairs of sacrebleu's scores on detokenised greedy output."
    )

    def __init__(self, *, data: ManyData, model: PairModel, decoding: Decoding) -> None:
        self.data = data
        self.parts = model
        self.decoding = decoding
        self.vocabulary: Vocabulary
        self._stores: Joined
        self._valid: dict[str, tuple[list[str], list[str]]]

    def about(self) -> str:
        """The directions and the corpus."""
        return f"{', '.join(self.data.pairs)}, on {self.data.corpus or self.data.train}"

    def has(self, split: Split) -> bool:
        """See Task.has."""
        return self.data.of(self.data.pairs[0]).has(split)

    def rehearse(self) -> Loss:
        """Two pairs under a vocabulary of 19 tokens."""
        batch = collate_pairs([[17, 5, 6, 7], [18, 8]], [[9, 10], [11, 12, 13]])
        return self.parts.build(19, 19, one_vocabulary=True).loss(batch)

    def check_ready(self) -> None:
        """See that all files are there, and that the parts of the model fit together."""
        with within("model"):
            self.parts.build(5, 5, one_vocabulary=True)
        for pair in self.data.pairs:
            for split in SPLITS:
                if self.data.of(pair).has(split):
                    self.data.of(pair).open(split)

    def prepare(self, run: Path, progress: Progress) -> Ready:
        """Learn the vocabulary unless the run has it, then open or build a token store for each pair."""
        if not (run / "tokenizer.json").exists():
            progress("learning the vocabulary", 0, None)
            how = self.data.vocabulary
            self.vocabulary = Vocabulary.train(
                self._text(),
                kind=how.kind,
                size=how.size,
                min_count=how.min_count,
                form=how.form,
                lowercase=how.lowercase,
            )
            self.vocabulary.save(run / "tokenizer.json")
        self.open(run)
        self._stores = Joined([self._stored(pair, run, progress) for pair in self.data.pairs])
        self._valid = {pair: self.data.of(pair).complete("valid") for pair in self.data.pairs}
        return self

    def open(self, run: Path) -> Ready:
        """Read the vocabulary of the run."""
        if not (run / "tokenizer.json").exists():
            raise CheckpointError(f"{run / 'tokenizer.json'}: is missing; this is no run that was trained")
        self.vocabulary = Vocabulary.load(run / "tokenizer.json")
        return self

    def model(self) -> Generator:
        """A new model for this vocabulary and its symbols of languages."""
        size = len(self.vocabulary) + self.data.symbols
        return self.parts.build(size, size, one_vocabulary=True)

    def writes(self) -> Vocabulary:
        """See Task.writes."""
        return self.vocabulary

    def common(self) -> Mapping[str, Any]:
        """See Task.common."""
        asked = {"prompt": self.data.prompt, "languages": (self.data.targets, self.data.names)}
        return {"vocabulary": pieces(self.vocabulary), **asked}

    def plan(self, seed: int) -> Mixture:
        """Batches of all pairs, mixed by temperature."""
        return Mixture(
            self._stores.lengths,
            temperature=self.data.temperature,
            max_tokens=self.data.batch_tokens,
            max_rows=self.data.batch_rows or None,
            seed=seed,
        )

    def collate(self, numbers: np.ndarray) -> PairBatch:
        """Training pairs by number over all stores."""
        pairs = [self._stores[number] for number in numbers.tolist()]
        return collate_pairs([source for source, _ in pairs], [target for _, target in pairs])

    def validate(self, model: nn.Module) -> Validation:
        """Mean loss and perplexity over the trained pairs, mean BLEU and chrF of greedy translations."""
        assert isinstance(model, Generator)
        losses, compared, samples = [], [], []
        many = ManyTranslator(model, self.data, self.vocabulary, Decoding(search="greedy"))
        for pair, (sources, references) in self._valid.items():
            rows = self.data.validate_rows or len(sources)
            sources, references = sources[:rows], references[:rows]
            asking = self._asking(pair)
            targets = self.vocabulary.encode_batch(references)
            losses.append(loss_of_pairs(model, asking.encode_batch(sources), targets))
            outputs = [found[0].text for found in many.of(pair).translate(sources)]
            compared.append(of_lines(outputs, references, sources))
            said = [n for n, source in enumerate(sources) if source.strip()] or [0]
            shown = said[samples_of(len(said), 1)[0]]
            samples.append(Sample(f"{pair}: {sources[shown]}", references[shown], outputs[shown]))
        loss = float(np.mean(losses))
        scores = {"loss": loss, "perplexity": perplexity(loss)}
        chosen = [samples[n] for n in samples_of(len(samples), 4)]
        return Validation(scores, chosen, compared).with_metrics([Bleu(), Chrf()])

    def predictor(self, model: nn.Module) -> ManyTranslator:
        """The trained model at work: `predict(text, "de")`, or `to("de")` for a translator of one pair."""
        assert isinstance(model, Generator)
        return ManyTranslator(model, self.data, self.vocabulary, self.decoding)

    def answers(
        self, model: nn.Module, source: Path | BinaryIO, options: Mapping[str, Any]
    ) -> Iterator[Answer]:
        """A translation a line into the language that --target names."""
        assert isinstance(model, Generator)
        if "target" not in options:
            raise ConfigError(f"--target: name the language to write, one of {', '.join(self.data.targets)}")
        translator = self._asked(model, options).to(options["target"], options.get("source"))
        return answers(translator, source, options)

    def evaluate(
        self,
        model: nn.Module,
        *,
        split: Split = "test",
        data: Path | None = None,
        options: Mapping[str, Any] = {},
    ) -> ManyEvaluation | GivenScores:
        """Every trained pair and every unseen one with its scores and baselines; see Task.evaluate.

        With the option `score`, a file as `--output` writes it (pair TAB translation), nothing is translated:
        the log-probability of each of its lines.

        Raises:
            ConfigError: other data came; a file does not say which pair it is of.
        """
        assert isinstance(model, Generator)
        if data is not None:
            raise ConfigError("--data: a model of many pairs is scored on its recipe's files; leave it out")
        if "score" in options:
            return self._scored(model, split, options)
        found = {}
        many = self._asked(model, options)
        for pair in (*self.data.pairs, *self.data.zero_shot):
            rows = list(self.data.of(pair).open(split))
            found[pair] = evaluate(
                many.of(pair),
                [source for _, source, _ in rows],
                [target for _, _, target in rows],
                title=self.data.of(pair).describe(split),
                lowercase=options.get("lowercase", False),
            )
        return together(found, self.data.zero_shot)

    @classmethod
    def check(cls, files: Sequence[Path]) -> Report:
        """Parallel text: see weft/data/check.py."""
        return check(*files)

    def _asked(self, model: Generator, options: Mapping[str, Any]) -> ManyTranslator:
        others = [joined(member, self) for member in options.get("ensemble", ())]
        decoding = self.decoding.asked(options)
        return ManyTranslator(model, self.data, self.vocabulary, decoding, others=others)

    def _scored(self, model: Generator, split: Split, options: Mapping[str, Any]) -> GivenScores:
        labels: list[str] = []
        read: list[list[int]] = []
        kept: list[int] = []
        for pair in (*self.data.pairs, *self.data.zero_shot):
            rows = list(self.data.of(pair).open(split))
            sources = [row.source for row in rows]
            kept += [len(read) + number for number in complete(sources, [row.target for row in rows])]
            read += self._asking(pair).encode_batch(sources)
            labels += [pair] * len(sources)
        return score_file(
            model,
            len(read),
            self.vocabulary.encode_batch,
            lambda numbers, rows: collate_pairs([read[n] for n in numbers], rows),
            options,
            labels=labels,
            kept=kept,
        )

    def _asking(self, pair: str) -> Asking:
        return self.data.asking(self.vocabulary, *pair.split("-"))

    def _text(self) -> Iterator[str]:
        """Each language once, from the first pair that has it, and the words of the prompts."""
        seen: set[str] = set()
        for pair in self.data.pairs:
            source, target = pair.split("-")
            for _, *sides in self.data.of(pair).open("train"):
                for language, side in zip((source, target), sides, strict=True):
                    if language not in seen:
                        yield side
            seen |= {source, target}
        if self.data.prompt is not None:
            for pair in (*self.data.pairs, *self.data.zero_shot):
                source, target = pair.split("-")
                names = {"source": self.data.name(source), "target": self.data.name(target)}
                # As often as a frequent phrase, so that it becomes few pieces.
                for _ in range(100):
                    yield self.data.prompt.replace("{text}", "").format(**names)

    def _stored(self, pair: str, run: Path, progress: Progress) -> TokenStore:
        train, asking = self.data.of(pair).open("train"), self._asking(pair)
        length = self.data.max_length
        key = content_key(
            train.files,
            vocabularies=[(run / "tokenizer.json").read_text("utf-8")],
            max_length=length,
            languages=pair.split("-"),
            asking=[self.data.prompt, self.data.names, self.data.targets],
        )
        store = TokenStore.build(
            cache_directory() / "stores" / key[:32],
            train,
            partial(encode_pairs, asking, self.vocabulary),
            max_length=length,
            key=key,
            progress=lambda lines: progress(f"reading training pairs {pair}", lines, None),
        )
        progress(f"{pair}: {store.report['kept']:,} of {store.report['pairs']:,} training pairs kept", 0, 0)
        return store
