"""A recipe's section `model` for classification, and how the model reads texts: as tokens, or items of a bag.

The model is an encoder and a pool, or a linear one over a bag of n-grams of words and of letters, weighted.
Several labels are each decided alone, above a threshold of their own. A class with subclasses has the
probability of all of them, so that a text of a rare kind does not have to look like all others of its class.
Read next: ../../nn/pools.py; ../../nn/embed/grams.py, the linear one; predictor.py.
"""

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from weft.errors import CheckpointError, ConfigError
from weft.metrics.naive_bayes import grams
from weft.metrics.threshold import best_f1
from weft.models import Labeller
from weft.nn.embed.contextual import Context, InContext, Twice
from weft.nn.embed.grams import Grams, GramTable
from weft.nn.embed.subwords import ngrams
from weft.nn.embed.tokens import Tokens
from weft.nn.embed.weighted import idf
from weft.nn.encoders.bag import BagEncoder
from weft.nn.encoders.encoder import Encoder, Memory
from weft.nn.encoders.recurrent import RecurrentEncoder
from weft.nn.heads.categorical import Categorical
from weft.nn.heads.head import Head, Loss
from weft.nn.ops import Dropout, linear
from weft.nn.pools import Mean, Pool, Summary
from weft.setting_types import DropoutRate, Size
from weft.store import jsonfile
from weft.tasks.classify.data import names_of
from weft.tasks.labels.base import ClassWeights, LabelBatch, check_weights
from weft.tasks.seq2seq.encoding import pad
from weft.text.loading import load_vocabulary
from weft.text.normalise import words_of
from weft.text.vocabulary import EOS, SOS, Vocabulary

USUAL = 0.5
"""The threshold of a label before `weft evaluate --calibrate`."""


@dataclass(frozen=True, kw_only=True)
class TextEmbedding:
    """How tokens become vectors.

    Args:
        size: features of a token's vector.
        dropout: share of features set to zero in training.
        vectors: a text file of word2vec or GloVe vectors of this size that the table begins with; its words
            join the vocabulary, so texts may have words that training never saw.
        fixed: do not train the table; few texts spoil vectors learnt from many.
        contextual: a run of the task elmo or masked, whose vectors of words in context are appended.
        tuned: train the model of that run further too; otherwise it stays as it is.
    """

    size: Size = 128
    dropout: DropoutRate = 0.3
    vectors: Path | None = None
    fixed: bool = False
    contextual: Path | None = None
    tuned: bool = False

    def __post_init__(self) -> None:
        if self.size < 1:
            raise ConfigError(f"size: expected at least 1, got {self.size}")
        _share("dropout", self.dropout)
        if self.tuned and self.contextual is None:
            raise ConfigError("tuned: expected contextual, the run whose model is trained further")
        if self.fixed and self.vectors is None:
            raise ConfigError("fixed: true needs vectors; set vectors, or leave fixed out")


@dataclass(frozen=True, kw_only=True)
class Bag:
    """A linear model of the words, word n-grams and letter n-grams of a text, whatever their order.

    Args:
        ngrams: the longest n-grams of words; 1 for words alone.
        edges: n-grams include the beginning and the end of a text, so that "what" as the first word is an
            item of its own.
        size: number of word n-grams, the most frequent ones; 0 for all.
        letters: the shortest and the longest letter n-grams of words between spaces; the beginning and the
            end of a word count as a letter each ("cat" has "<ca"); null for none.
        letters_size: number of letter n-grams, the most frequent ones; 0 for all.
        min_count: number of texts that an item must occur in.
        weight: presence (1), count, frequency (the share of the text's items), or tfidf: (1 + log count)
            times the item's rarity; the words and the letters of a text are a vector of length 1 each.
        naive_bayes: begin as naive Bayes and scale by its log-ratios (Wang & Manning 2012), instead of
            plain logistic regression from zero.
        alpha: added to the counts of naive Bayes.
    """

    ngrams: int = 2
    edges: bool = False
    size: Size = 0
    letters: tuple[int, int] | None = None
    letters_size: Size = 200_000
    min_count: int = 1
    weight: Literal["presence", "count", "frequency", "tfidf"] = "presence"
    naive_bayes: bool = False
    alpha: float = 1.0

    def __post_init__(self) -> None:
        for name, least in (("ngrams", 1), ("size", 0), ("letters_size", 0), ("min_count", 1)):
            if getattr(self, name) < least:
                raise ConfigError(f"{name}: expected at least {least}, got {getattr(self, name)}")
        if self.letters is not None and not 2 <= self.letters[0] <= self.letters[1]:
            raise ConfigError(
                "letters: expected the shortest (at least 2) and the longest letter n-gram, such as [2, 5], "
                f"got {list(self.letters)}"
            )
        if not self.alpha > 0:
            raise ConfigError(f"alpha: expected a number above 0, got {self.alpha}")


@dataclass(frozen=True, kw_only=True)
class LabelModel:
    """The model that reads a text and gives its class.

    Args:
        encoder: a part of nn/encoders.
        pool: a part of nn/pools.py; it makes one vector of the states of a text.
        embedding: of tokens.
        dropout: share of the pool's features that is set to zero in training.
        smoothing: share of each class's probability spread over all of them in training.
        class_weights: balanced gives every class the same weight in training, however rare it is: a text of
            class c counts N / (C n_c), where n_c of the N training texts have one of the C classes. Or your
            own weights, such as {spam: 3}; classes that are left out count 1.
        bag: a linear model instead; encoder, pool and embedding are ignored then.
    """

    encoder: Callable[..., Encoder] = RecurrentEncoder
    pool: Callable[..., Pool] = Mean
    embedding: TextEmbedding = field(default_factory=TextEmbedding)
    dropout: DropoutRate = 0.3
    smoothing: float = 0.0
    class_weights: ClassWeights = "none"
    bag: Bag | None = None

    def __post_init__(self) -> None:
        _share("dropout", self.dropout)
        _share("smoothing", self.smoothing)
        check_weights(self.class_weights)
        if self.bag is not None and self.embedding.contextual is not None:
            raise ConfigError(
                "embedding.contextual: cannot be combined with a bag, which reads no vectors; leave one out"
            )

    def build(
        self,
        num_items: int,
        num_classes: int,
        contextual: Context | None = None,
        *,
        weights: Sequence[float] = (),
        several: bool = False,
        inside: Sequence[int] = (),
    ) -> Labeller:
        """A new model.

        Args:
            num_items: number of tokens, or of items of the bag.
            num_classes: C.
            contextual: a trained model of words in context.
            weights: of each class in the loss of training; empty for 1.
            several: whether a text may have several labels.
            inside: the class of each subclass, if the classes have any; see SubclassHead.
        """

        def head_of(size: int) -> Categorical | MultiLabelHead | SubclassHead:
            if several:
                return MultiLabelHead(size, num_classes)
            if inside:
                return SubclassHead(size, inside, smoothing=self.smoothing)
            return Categorical(size, num_classes, smoothing=self.smoothing, class_weights=weights)

        if self.bag is not None:
            sums = torch.eye(num_classes)  # the sum over the bag is the logit: the head adds its bias alone
            if inside:  # the logit of a subclass is its own sum and that of its class
                sums = torch.cat([sums[list(inside)], torch.eye(len(inside))], 1)
            columns = sums.shape[1]
            table = GramTable(num_items, columns, naive_bayes=self.bag.naive_bayes)
            head = head_of(columns)
            with torch.no_grad():
                head.weight.copy_(sums)
            head.weight.requires_grad_(False)
            encoder: Encoder = BagEncoder(columns, reduce="sum")
            return Labeller(table, encoder, head, pool=Summary(columns))
        embed = Tokens(num_items, self.embedding.size, dropout=self.embedding.dropout)
        embed.table.weight.requires_grad_(not self.embedding.fixed)
        front: nn.Module = embed
        if contextual is not None:
            how = self.embedding
            front = InContext(embed, contextual, dropout=how.dropout, tuned=how.tuned)
        encoder = self.encoder(self.embedding.size + (0 if contextual is None else contextual.width))
        pool = _Dropped(self.pool(encoder.size), self.dropout)
        return Labeller(front, encoder, head_of(pool.size), pool=pool)

    def check_labels(self, *, several: bool, finer: bool) -> None:
        """Check that a text may have several labels, or classes subclasses.

        Raises:
            ConfigError: a setting requires one class per text, without subclasses.
        """
        naive_bayes = self.bag is not None and self.bag.naive_bayes
        wrong = {
            "smoothing": several and self.smoothing > 0,
            "class_weights": self.class_weights != "none",
            "bag.naive_bayes": naive_bayes,
        }
        for name, given in wrong.items():
            if given and (several or finer):
                needs = "one class per text, but data.separator allows several"
                needs = needs if several else "classes without subclasses, but data.finer names some"
                raise ConfigError(f"model: {name}: requires {needs}; leave one of them out")


class _Dropped(Pool):
    """A pool with dropout behind it."""

    def __init__(self, pool: Pool, share: float) -> None:
        super().__init__(pool.size)
        self.pool = pool
        self.dropout = Dropout(share)

    def forward(self, memory: Memory) -> torch.Tensor:
        return self.dropout(self.pool(memory))  # type: ignore[no-any-return]


def _share(name: str, value: float) -> None:
    if not 0 <= value < 1:
        raise ConfigError(f"{name}: expected a share from 0 to below 1, got {value}")


class MultiLabelHead(Head):
    """p_c = sigmoid(w_c h + b_c), for each of C labels.

    Args:
        in_size: D, features of h.
        num_classes: C.

    Example:
        >>> MultiLabelHead(3, 5)(torch.zeros(2, 1, 3)).exp()[0, 0].tolist()
        [0.5, 0.5, 0.5, 0.5, 0.5]
    """

    def __init__(self, in_size: int, num_classes: int) -> None:
        super().__init__()
        self.bias = nn.Parameter(torch.zeros(num_classes))
        self.weight = nn.Parameter(torch.empty(num_classes, in_size))
        nn.init.normal_(self.weight, std=in_size**-0.5)

    def forward(self, h: Tensor) -> Tensor:
        """Log-probabilities [.., C] in at least float32; those of a text do not sum to 1."""
        return F.logsigmoid(self._logits(h))

    def loss(self, h: Tensor, target: Tensor, mask: Tensor) -> Loss:
        """Binary cross-entropies, summed over the labels of each text; targets [B, T, C] are 0 or 1."""
        logits = self._logits(h[mask])
        total = F.binary_cross_entropy_with_logits(logits, target[mask].to(logits), reduction="sum")
        return Loss(total, mask.sum())

    def best(self, h: Tensor, mask: Tensor) -> Tensor:
        """[B, T, C] bool: the labels with a probability of at least one half."""
        return self._logits(h) >= 0

    def _logits(self, h: Tensor) -> Tensor:
        logits = linear(h, self.weight, self.bias)
        return logits.to(torch.promote_types(logits.dtype, torch.float32))


def nats(probs: np.ndarray, target: np.ndarray) -> np.ndarray:
    """[N] the loss of each text, from probabilities [N, C] and targets [N, C] of 0 or 1."""
    right = np.where(target > 0, probs, 1 - probs)
    found: np.ndarray = -np.log(np.maximum(right, 1e-30)).sum(-1)
    return found


def thresholds(probs: np.ndarray, target: np.ndarray) -> list[float]:
    """For each label the threshold with the highest F1; 0.5 for a label that no text has.

    Args:
        probs: [N, C] of validation texts.
        target: [N, C] their labels, 0 or 1.

    Example:
        >>> thresholds(np.array([[0.4, 0.2], [0.1, 0.3]]), np.array([[1, 0], [0, 0]]))
        [0.25, 0.5]
    """
    return [
        best_f1(column, there > 0).value if there.any() else USUAL
        for column, there in zip(probs.T, target.T, strict=True)
    ]


NEVER = -1e9  # log-probability that fills classes with few subclasses


class SubclassHead(Head):
    """p(c) is the sum of p(s) over the subclasses s of c, with p(s) = softmax(W h + b)_s.

    Args:
        in_size: D, features of h.
        inside: [S] the class of each subclass; every class from 0 to C - 1 has one.
        smoothing: share of the probability of a subclass and of a class that is spread over all in training.

    Example:
        >>> SubclassHead(3, [0, 1, 1])(torch.zeros(1, 1, 3)).exp()[0, 0]
        tensor([0.3333, 0.6667], grad_fn=<SelectBackward0>)
    """

    inside: Tensor
    members: Tensor

    def __init__(self, in_size: int, inside: Sequence[int], *, smoothing: float = 0.0) -> None:
        super().__init__()
        self.smoothing = smoothing
        self.bias = nn.Parameter(torch.zeros(len(inside)))
        self.weight = nn.Parameter(torch.empty(len(inside), in_size))
        nn.init.normal_(self.weight, std=in_size**-0.5)
        own = [[s for s, c in enumerate(inside) if c == number] for number in range(max(inside) + 1)]
        most = max(map(len, own))
        filled = torch.tensor([one + [len(inside)] * (most - len(one)) for one in own])
        self.register_buffer("inside", torch.tensor(inside), persistent=False)  # [S] of the reader
        self.register_buffer("members", filled, persistent=False)  # [C, most]

    def forward(self, h: Tensor) -> Tensor:
        """Log-probabilities [.., C] in at least float32."""
        return self._classes(self._subclasses(h))

    def loss(self, h: Tensor, target: Tensor, mask: Tensor) -> Loss:
        """The mean of the cross-entropies of the subclass and of its class.

        A target is a subclass s, or S + c for a text of which only the class c is known: its subclass has the
        cross-entropy of the class.
        """
        logp, target = self._subclasses(h[mask]), target[mask]
        classes = self._classes(logp)
        both = torch.cat([logp, classes], -1)
        own = torch.cat([self.inside, torch.arange(classes.shape[-1], device=target.device)])[target]
        total = (F.nll_loss(both, target, reduction="sum") + F.nll_loss(classes, own, reduction="sum")) / 2
        if self.training and self.smoothing:
            spread = (logp.mean(-1) + classes.mean(-1)).sum() / 2
            total = (1 - self.smoothing) * total - self.smoothing * spread
        return Loss(total, mask.sum())

    def best(self, h: Tensor, mask: Tensor) -> Tensor:
        """The most probable class at each position."""
        return self(h).argmax(-1)  # type: ignore[no-any-return]

    def _subclasses(self, h: Tensor) -> Tensor:
        logits = linear(h, self.weight, self.bias)
        return logits.log_softmax(-1, dtype=torch.promote_types(logits.dtype, torch.float32))

    def _classes(self, logp: Tensor) -> Tensor:
        return F.pad(logp, (0, 1), value=NEVER)[..., self.members].logsumexp(-1)


Item = tuple[Hashable, ...]
"""Numbers of neighbouring tokens, or a letter n-gram: ("<qu",) begins a word."""

_CACHE = 200_000  # words whose letter n-grams are cached: text repeats itself


class BagItems:
    """The known items of a bag.

    Args:
        bag: which items there are, and their weights.
        kept: the known items, word n-grams before letter n-grams; numbered from 1, 0 is padding.
        documents: the number of training texts that contain each item.
        total: number of training texts.
    """

    def __init__(self, bag: Bag, kept: Sequence[Item], documents: Sequence[int] = (), total: int = 0) -> None:
        self.bag = bag
        self.kept = list(kept)
        self.documents = list(documents)
        self.total = total
        self._number = {item: number for number, item in enumerate(self.kept, 1)}
        spelled = (number for item, number in self._number.items() if isinstance(item[0], str))
        self._letters = min(spelled, default=len(self.kept) + 1)  # the first letter n-gram
        self._of_word: dict[str, list[int]] = {}
        rarity = idf(torch.tensor([0, *self.documents]), total)
        self._rarity = rarity.double().numpy()

    @classmethod
    def learn(cls, bag: Bag, rows: Iterable[Sequence[int]], words: Iterable[Sequence[str]]) -> "BagItems":
        """The most frequent items of the training texts; among equally frequent ones, those seen first.

        Args:
            bag: how many word n-grams and how many letter n-grams are kept.
            rows: the tokens of each text.
            words: the words between spaces of each text.
        """
        runs: Counter[Item] = Counter()
        letters: Counter[Item] = Counter()
        total = 0
        for row, split in zip(rows, words, strict=True):
            total += 1
            runs.update(dict.fromkeys(_runs(row, bag)).keys())
            if bag.letters is not None:
                here = dict.fromkeys(gram for word in dict.fromkeys(split) for gram in _spelled(word, bag))
                letters.update(here.keys())
        kept = [*_frequent(runs, bag.min_count, bag.size)]
        kept += _frequent(letters, bag.min_count, bag.letters_size)
        return cls(bag, [item for item, _ in kept], [count for _, count in kept], total)

    def number(self, item: Item) -> int:
        """The number of an item; 0 if it is unknown."""
        return self._number.get(item, 0)

    def counted(self, tokens: Sequence[int], words: Sequence[str]) -> Counter[int]:
        """The count of each known item in a text, given its tokens and its words between spaces."""
        known = self._number
        found = Counter(known[item] for item in _runs(tokens, self.bag) if item in known)
        if self.bag.letters is not None:
            for word in words:
                found.update(self.of_word(word))
        return found

    def of_word(self, word: str) -> list[int]:
        """The known letter n-grams of a word, with repetitions; none where the bag has no letters."""
        numbers = self._of_word.get(word)
        if numbers is None:
            spelled = () if self.bag.letters is None else _spelled(word, self.bag)
            numbers = [self._number[item] for item in spelled if item in self._number]
            if len(self._of_word) >= _CACHE:
                self._of_word.clear()
            self._of_word[word] = numbers
        return numbers

    def weighed(self, counts: Counter[int]) -> np.ndarray:
        """The weight of each item of a text, in the order of `counts`, float32.

        presence: 1; count: n_i; frequency: n_i / sum_j n_j; tfidf: (1 + ln n_i) idf_i, divided by the length
        of the text's vector of word n-grams, or of letter n-grams. idf_i = ln((1 + N) / (1 + N_i)) + 1, where
        N_i of N training texts contain i.

        Source: Salton & Buckley 1988 for tfidf, with scikit-learn's smoothing. A text has many more letter
        n-grams than word n-grams: with one length for both, the words would hardly count.
        """
        values = np.array(list(counts.values()), dtype=np.float64)
        if self.bag.weight == "presence":
            values = np.ones_like(values)
        elif self.bag.weight == "frequency":
            values = values / max(1.0, float(values.sum()))
        elif self.bag.weight == "tfidf":
            numbers = np.array(list(counts), dtype=np.int64)
            values = (1 + np.log(values)) * self._rarity[numbers]
            for part in (numbers < self._letters, numbers >= self._letters):
                values[part] /= max(1e-12, float(np.sqrt(np.square(values[part]).sum())))
        return values.astype(np.float32)


def _runs(tokens: Sequence[int], bag: Bag) -> list[Item]:
    """N-grams of tokens; with edges also those with SOS before and EOS after them, but neither alone."""
    if not bag.edges:
        return grams(tokens, bag.ngrams)
    return [item for item in grams([SOS, *tokens, EOS], bag.ngrams) if item not in ((SOS,), (EOS,))]


def _spelled(word: str, bag: Bag) -> list[Item]:
    assert bag.letters is not None
    return [(gram,) for gram in ngrams(word, *bag.letters)]


def _frequent(counts: Counter[Item], least: int, most: int) -> list[tuple[Item, int]]:
    found = [(item, count) for item, count in counts.items() if count >= least]
    found.sort(key=lambda each: -each[1])
    return found[: most or None]


class SavedReader(jsonfile.Schema):
    """A tokenizer.classes.json: an item is an n-gram of tokens, or of letters."""

    classes: Annotated[list[str], jsonfile.Meta(min_length=1)]
    items: list[list[int | str]] = jsonfile.field(default_factory=list)
    documents: list[jsonfile.Count] = jsonfile.field(default_factory=list)
    finer: list[tuple[str, str]] = jsonfile.field(default_factory=list)
    texts: jsonfile.Count | None = None


class LabelDecision(NamedTuple):
    """The class of a text, or its labels."""

    label: str  # several are joined by the separator
    probs: np.ndarray  # [C] in the order of the classes
    names: Sequence[str] | None = None  # the labels, where a text may have several

    @property
    def prob(self) -> float:
        """The highest probability; that of the class, if there is one."""
        return float(self.probs.max())


class LabelReader:
    """Texts to batches.

    Args:
        vocabulary: of tokens.
        classes: in the order of their numbers.
        items: of a bag; None for a model that reads tokens in order.
        max_length: number of tokens that are read of a text, and of words whose letters are read.
        separator: between the labels of a text; None if each has one class.
        finer: pairs of a class and one of its subclasses; empty if classes have none.

    Attributes:
        thresholds: probability from which on each label is given, where a text may have several.
        context: spells sentences for a model of words in context, if there is one.
        temperature: divides the log-probabilities of the classes; see ../labels/calibration.py.
    """

    def __init__(
        self,
        vocabulary: Vocabulary,
        classes: Sequence[str],
        *,
        items: BagItems | None,
        max_length: int,
        separator: str | None = None,
        finer: Sequence[tuple[str, str]] = (),
    ) -> None:
        self.vocabulary = vocabulary
        self.classes = list(classes)
        self.separator = separator
        self.thresholds = [USUAL] * len(self.classes)
        self.items = items
        self.max_length = max_length
        self.context: Callable[[Sequence[Sequence[str]]], Any] | None = None
        self.temperature = 1.0
        self._class = {label: number for number, label in enumerate(self.classes)}
        self.finer = list(finer)
        self._subclass = {pair: number for number, pair in enumerate(self.finer)}

    @classmethod
    def learn(
        cls,
        vocabulary: Vocabulary,
        texts: Sequence[str],
        labels: Iterable[str],
        *,
        bag: Bag | None,
        max_length: int,
        separator: str | None = None,
        finer: Sequence[str] = (),
    ) -> "LabelReader":
        """Learn the classes and the items; among equally frequent items, those seen first.

        A class all of whose texts lack a subclass is its own.
        """
        labels = list(labels)
        classes = sorted({name for label in set(labels) for name in names_of(label, separator)})
        pairs = {pair for pair in zip(labels, finer, strict=False) if pair[1]}
        if pairs:
            pairs |= {(name, "") for name in {*classes} - {name for name, _ in pairs}}
        given: dict[str, Any] = {"max_length": max_length, "separator": separator, "finer": sorted(pairs)}
        reader = cls(vocabulary, classes, items=None, **given)
        if bag is not None:
            reader.items = BagItems.learn(bag, reader.encode(texts), map(reader.split, texts))
        return reader

    @property
    def num_items(self) -> int:
        """Rows of the model's table."""
        return len(self.vocabulary) if self.items is None else len(self.items.kept) + 1

    def encode(self, texts: Sequence[str]) -> list[list[int]]:
        """The tokens of each text that are read."""
        return [tokens[: self.max_length] for tokens in self.vocabulary.encode_batch(texts)]

    def split(self, text: str) -> list[str]:
        """The words between spaces whose letters are read, as the vocabulary normalises them."""
        form, lowercase = self.vocabulary.form, self.vocabulary.lowercase
        return words_of(text, form=form, lowercase=lowercase)[: self.max_length]

    def number(self, label: str) -> int:
        """The number of a class; -1 for one that training never saw."""
        return self._class.get(label, -1)

    @property
    def inside(self) -> list[int]:
        """The class of each subclass."""
        return [self._class[name] for name, _ in self.finer]

    def unknown(self, labels: Iterable[str]) -> list[str]:
        """The classes in the labels of texts that training never saw, sorted."""
        return sorted({n for label in set(labels) for n in names_of(label, self.separator)} - {*self.classes})

    def targets(self, labels: Sequence[str]) -> Tensor:
        """[B] the numbers of classes; of several labels [B, C], 1 for each that a text has."""
        if self.separator is None:
            return torch.tensor([self.number(label) for label in labels], dtype=torch.int64)
        found = torch.zeros(len(labels), len(self.classes))
        for row, label in zip(found, labels, strict=True):
            row[[self._class[name] for name in names_of(label, self.separator) if name in self._class]] = 1.0
        return found

    def decide(self, probs: np.ndarray) -> LabelDecision:
        """The likeliest class, or every label above its threshold."""
        if self.separator is None:
            return LabelDecision(self.classes[int(probs.argmax())], probs)
        names = [self.classes[n] for n in np.flatnonzero(probs >= np.array(self.thresholds))]
        return LabelDecision(self.separator.join(names), probs, names)

    def counted(self, tokens: Sequence[int], text: str) -> Counter[int]:
        """The count of each known item of the bag in a text, whose tokens are given too."""
        assert self.items is not None
        words = self.split(text) if self.items.bag.letters is not None else ()
        return self.items.counted(tokens, words)

    def source(self, rows: Sequence[Sequence[int]], texts: Sequence[str]) -> tuple[Any, Tensor]:
        """The tokens of texts, and the texts themselves, as the model reads them, and their mask."""
        if self.items is None:
            tokens, mask = pad(rows)
            if self.context is None:
                return tokens, mask
            words = [self.vocabulary.surface_pieces(text)[: self.max_length] or [" "] for text in texts]
            return Twice(tokens, self.context(words), mask), mask
        counted = [self.counted(row, text) for row, text in zip(rows, texts, strict=True)]
        numbers, mask = pad([list(counts) for counts in counted])
        weights = np.zeros(numbers.shape, dtype=np.float32)
        for row, counts in enumerate(counted):
            weights[row, : len(counts)] = self.items.weighed(counts)
        return Grams(numbers, torch.from_numpy(weights)), mask

    def batch(
        self,
        rows: Sequence[Sequence[int]],
        labels: Sequence[str],
        texts: Sequence[str],
        finer: Sequence[str] = (),
    ) -> LabelBatch:
        """A batch of the tokens of texts, their labels, the texts themselves, and their known subclasses."""
        source, mask = self.source(rows, texts)
        target = self.targets(labels)
        if self.finer:  # see Nested.loss
            pairs = zip(labels, finer or [""] * len(labels), strict=True)
            known = torch.tensor([self._subclass.get(pair, -1) for pair in pairs])
            target = torch.where(known < 0, len(self.finer) + target, known)
        return LabelBatch(source, mask, target, len(rows))

    def save(self, run: Path) -> None:
        """Write classes and items into the run, beside the vocabulary."""
        plain: dict[str, Any] = {"classes": self.classes, "items": []}
        if self.finer:
            plain["finer"] = self.finer
        if self.items is not None:
            plain["items"] = self.items.kept
            if self.items.bag.weight == "tfidf":
                plain |= {"documents": self.items.documents, "texts": self.items.total}
        jsonfile.save(run / "tokenizer.classes.json", plain)

    @classmethod
    def load(
        cls, run: Path, *, bag: Bag | None, max_length: int, separator: str | None = None
    ) -> "LabelReader":
        """Read what `save` wrote.

        Raises:
            CheckpointError: it is missing or damaged.
        """
        path = run / "tokenizer.classes.json"
        remedy = "this is not a run of a classifier, or training has not started"
        saved = jsonfile.load(path, SavedReader, remedy)
        items = None
        if bag is not None:
            counts, rare = saved.documents, bag.weight == "tfidf"
            if rare and (saved.texts is None or len(counts) != len(saved.items)):
                raise CheckpointError(f"{path}: expected a number of documents for each item; {remedy}")
            if any(not item or len({type(part) for part in item}) > 1 for item in saved.items):
                raise CheckpointError(f"{path}: expected items of tokens or letters, got another; {remedy}")
            items = BagItems(
                bag, [tuple(item) for item in saved.items], counts if rare else (), saved.texts or 0
            )
        vocabulary = load_vocabulary(run / "tokenizer.json")
        if saved.finer and {name for name, _ in saved.finer} != set(saved.classes):
            raise CheckpointError(f"{path}: expected a subclass of each class, got others; {remedy}")
        given: dict[str, Any] = {"max_length": max_length, "separator": separator, "finer": saved.finer}
        return cls(vocabulary, saved.classes, items=items, **given)
