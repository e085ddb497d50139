"""A recipe's section `model` for classification, and the heads for several labels and for subclasses.

The model is an encoder and a pool, or a linear one over a bag of n-grams of words and of letters, weighted.
Several labels are each decided alone, above a threshold of their own. A class with subclasses has the
probability of all of them, so that a text of a rare kind does not have to look like all others of its class.
Read next: reader.py, which makes its batches; ../../nn/pools.py; ../../nn/embed/grams.py, the linear one.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from weft.errors import ConfigError
from weft.masks import or_all, positions, summed
from weft.metrics.calibration import best_threshold
from weft.models import Labeller
from weft.nn.embed.contextual import Context, InContext
from weft.nn.embed.grams import GramTable
from weft.nn.embed.tokens import Tokens
from weft.nn.encoders.encoder import BagEncoder, Encoder, Memory
from weft.nn.encoders.recurrent import RecurrentEncoder
from weft.nn.heads.categorical import Categorical
from weft.nn.heads.head import Head, Loss
from weft.nn.ops import Dropout, linear
from weft.nn.pools import Mean, Pool, Summary
from weft.setting_types import AtLeastOne, DropoutRate, Features, Positive, Share, Size, check_fields
from weft.tasks.labels.base import ClassWeights, WordVectorSettings, check_weights
from weft.tasks.reused import Frame

USUAL = 0.5
"""The threshold of a label before `weft evaluate --calibrate`."""


@dataclass(frozen=True, kw_only=True)
class TextEmbedding(WordVectorSettings):
    """How tokens become vectors.

    Args:
        size: features of a token's vector.
        vectors: a run of the task embeddings, or a file of word2vec or GloVe vectors: of this size, and the
            table begins with them. With bag.solve, of any size, and the mean vector of a text's words is read
            beside its items. Their words join the vocabulary, so texts may have words that training never
            saw. Only training reads them.
        fixed: do not train the table; few texts spoil vectors learnt from many.
        frame: symbols that a text is read between, as in the run of `training.start`: before (</s> before
            it), after (</s> after it) or both (<s> and </s>).
    """

    size: Features = 128
    frame: Frame = "none"


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
        solve: find the best weights on all texts at once, in seconds, instead of training by updates; of the
            section training, only metric, refit and settings of the run have an effect then.
        penalty: of `solve`: half of it times the sum of the squared weights is added to the loss; null
            chooses it on the validation texts.
    """

    ngrams: AtLeastOne = 2
    edges: bool = False
    size: Size = 0
    letters: tuple[int, int] | None = None
    letters_size: Size = 200_000
    min_count: AtLeastOne = 1
    weight: Literal["presence", "count", "frequency", "tfidf"] = "presence"
    naive_bayes: bool = False
    alpha: Positive = 1.0
    solve: bool = False
    penalty: Positive | None = None

    def __post_init__(self) -> None:
        check_fields(self)
        if self.penalty is not None and not self.solve:
            raise ConfigError("penalty: requires solve: true; add it, or leave penalty out")
        if self.letters is not None and not 2 <= self.letters[0] <= self.letters[1]:
            raise ConfigError(
                "letters: expected the shortest (at least 2) and the longest letter n-gram, such as [2, 5], "
                f"got {list(self.letters)}"
            )


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
            own weights, such as {spam: 3}; classes that are left out count 1. With bag.solve, best tries none
            and balanced, and keeps the one with the lower loss of the validation texts.
        bag: a linear model instead; encoder, pool and embedding are ignored then, but for embedding.vectors.
    """

    encoder: Callable[..., Encoder] = RecurrentEncoder
    pool: Callable[..., Pool] = Mean
    embedding: TextEmbedding = field(default_factory=TextEmbedding)
    dropout: DropoutRate = 0.3
    smoothing: Share = 0.0
    class_weights: ClassWeights | Literal["best"] = "none"
    bag: Bag | None = None

    def __post_init__(self) -> None:
        check_fields(self)
        if self.class_weights == "best":
            if self.bag is None or not self.bag.solve:
                raise ConfigError("class_weights: best requires bag.solve: true; set none or balanced")
        else:
            check_weights(self.class_weights)
        if self.bag is not None and self.embedding.contextual is not None:
            raise ConfigError(
                "embedding.contextual: cannot be combined with a bag, which reads no words in context; "
                "leave one out"
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
        """Check that a text may have several labels, or classes subclasses."""
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


class MultiLabelHead(Head):
    """p_c = sigmoid(w_c h + b_c), for each of C labels."""

    def __init__(self, in_size: int, num_classes: int) -> None:
        super().__init__()
        self.bias = nn.Parameter(torch.zeros(num_classes))
        self.weight = nn.Parameter(torch.empty(num_classes, in_size))
        nn.init.normal_(self.weight, std=in_size**-0.5)

    def forward(self, h: Tensor) -> Tensor:
        """Log-probabilities [.., C] in at least float32; those of a text do not sum to 1."""
        return F.logsigmoid(self._logits(h))

    def loss(self, h: Tensor, target: Tensor, mask: Tensor | None = None) -> Loss:
        """Binary cross-entropies, summed over the labels of each text; targets [B, T, C] are 0 or 1."""
        mask = or_all(mask, target)
        logits = self._logits(positions(h, mask))
        wanted = positions(target, mask).to(logits)
        costs = F.binary_cross_entropy_with_logits(logits, wanted, reduction="none")
        return Loss(summed(costs, mask), mask.sum())

    def best(self, h: Tensor, mask: Tensor | None = None) -> Tensor:
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
    """
    return [
        best_threshold(column, there > 0) if there.any() else USUAL
        for column, there in zip(probs.T, target.T, strict=True)
    ]


NEVER = -1e9  # log-probability that fills classes with few subclasses


class SubclassHead(Head):
    """p(c) is the sum of p(s) over the subclasses s of c, with p(s) = softmax(W h + b)_s.

    Args:
        inside: [S] the class of each subclass; every class from 0 to C - 1 has one.
        smoothing: share of the probability of a subclass and of a class that is spread over all in training.
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

    def loss(self, h: Tensor, target: Tensor, mask: Tensor | None = None) -> Loss:
        """The mean of the cross-entropies of the subclass and of its class.

        A target is a subclass s, or S + c for a text of which only the class c is known: its subclass has the
        cross-entropy of the class.
        """
        mask = or_all(mask, target)
        logp, target = self._subclasses(positions(h, mask)), positions(target, mask)
        classes = self._classes(logp)
        both = torch.cat([logp, classes], -1)
        own = torch.cat([self.inside, torch.arange(classes.shape[-1], device=target.device)])[target]
        right = both.gather(1, target[:, None]) + classes.gather(1, own[:, None])
        costs = -right[:, 0] / 2
        if self.training and self.smoothing:
            spread = (logp.mean(-1) + classes.mean(-1)) / 2
            costs = (1 - self.smoothing) * costs - self.smoothing * spread
        return Loss(summed(costs, mask), mask.sum())

    def best(self, h: Tensor, mask: Tensor | None = None) -> Tensor:
        """The most probable class at each position."""
        return self(h).argmax(-1)  # type: ignore[no-any-return]

    def _subclasses(self, h: Tensor) -> Tensor:
        logits = linear(h, self.weight, self.bias)
        return logits.log_softmax(-1, dtype=torch.promote_types(logits.dtype, torch.float32))

    def _classes(self, logp: Tensor) -> Tensor:
        return F.pad(logp, (0, 1), value=NEVER)[..., self.members].logsumexp(-1)
