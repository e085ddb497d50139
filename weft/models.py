"""Complete models: a Generator writes sequences, a Labeller labels them.

Read next: nn/encoders/encoder.py and nn/decoders/decoder.py, the parts; search/beam.py, which calls `step`;
tasks/translate/task.py, which builds a model from a recipe.
"""

from collections.abc import Callable
from typing import Any, Literal, Protocol

import torch
from torch import Tensor, nn

from weft import masks
from weft.errors import ConfigError
from weft.native import WholeStep
from weft.nn.decoders.decoder import Decoder
from weft.nn.encoders.encoder import Encoder, Memory
from weft.nn.heads.head import Head, Loss
from weft.nn.ops import Ends
from weft.nn.pools import Pool
from weft.nn.positions import most_positions
from weft.nn.randomness import for_rows, open_generator, uniform
from weft.shapes import check_choice
from weft.tree import State, at_step, detach, join_steps

Prompt = Literal["ignored", "read", "learned"]


class SequencePair(Protocol):
    """A batch of sources and targets, the training input of a Generator."""

    @property
    def source(self) -> Any:
        """[B, S] tokens, or another input of the source embedding."""

    @property
    def source_mask(self) -> Tensor:
        """[B, S] bool."""

    @property
    def target_in(self) -> Tensor:
        """[B, T] <sos> w_1 .. w_n."""

    @property
    def target_out(self) -> Tensor:
        """[B, T] w_1 .. w_n <eos>."""

    @property
    def target_mask(self) -> Tensor:
        """[B, T] bool."""


class WholeSteps:
    """The base of a model whose `step` is token vectors, a decoder and a head, and nothing else.

    Searches of many steps at once call `whole_step` (search/compiled.py) or `fixed` (search/captured.py). A
    class with another `step` has None there, and is searched by calling that.
    """

    embed: Any
    decoder: Any
    head: Any
    training: bool
    between_steps: Callable[[], None] | None = None
    """Called between the steps of a search; an error raised here ends the search."""

    def pause(self) -> None:
        """Call `between_steps`."""
        if self.between_steps is not None:
            self.between_steps()

    def fixed(self, state: State, width: int, steps: int) -> tuple[State, int] | None:
        """A state in tensors whose shapes `step` leaves as they are, and for how many steps."""
        found: tuple[State, int] | None = None if self.training else self.decoder.fixed(state, width, steps)
        return found

    def whole_step(self, state: State, width: int, steps: int) -> WholeStep | None:
        """`step` in compiled code, for many steps in one call; None where it cannot be."""
        vectors, output = getattr(self.embed, "vectors", None), self.head.output()
        if self.training or vectors is None or output is None:
            return None
        found: WholeStep | None = self.decoder.whole_step(state, Ends(vectors(), output, width, steps))
        if found is None:
            return None
        prepare = found.before

        def before(time: int) -> None:
            self.pause()
            prepare(time)

        return found._replace(before=before)


class Generator(WholeSteps, nn.Module):
    """Writes a sequence, given a source (with an encoder) or unconditionally (without).

    Args:
        embed: embeds target tokens, [B, T] to [B, T, D].
        decoder: computes the hidden states of the target.
        head: predicts the next token.
        encoder: reads the source; None for a language model.
        source_embed: embeds the source; None to share `embed`.
        prompt: use of the source without an encoder: "ignored", "read" (the decoder reads and continues it,
            the multilingual translator as a language model) or "learned" (the same, and in training its
            tokens are targets too).

    Raises:
        ConfigError: an unknown prompt, or one together with an encoder; or only one of decoder and head can
            copy.

    Example:
        >>> from weft.nn import Categorical, RecurrentDecoder, RecurrentEncoder, Tokens
        >>> encoder = RecurrentEncoder(3, sizes=(5,))
        >>> decoder = RecurrentDecoder(3, encoder, sizes=(5,))
        >>> model = Generator(Tokens(7, 3), decoder, Categorical(5, 7), encoder=encoder)
        >>> source = torch.tensor([[4, 5], [6, 0]])  # [B, S]
        >>> logp, state = model.step(torch.tensor([2, 2]), model.start(source, source > 0))
        >>> logp.shape  # [B, V]
        torch.Size([2, 7])
    """

    def __init__(
        self,
        embed: nn.Module,
        decoder: Decoder,
        head: Head,
        *,
        encoder: Encoder | None = None,
        source_embed: nn.Module | None = None,
        prompt: Prompt = "ignored",
    ) -> None:
        super().__init__()
        prompt = "learned" if prompt == "learnt" else prompt  # type: ignore[comparison-overlap]  # as before
        check_choice("prompt", prompt, Prompt)
        if encoder is not None and prompt != "ignored":
            raise ConfigError(
                f"prompt: expected none beside an encoder, which reads the source, got {prompt}"
            )
        if decoder.copies != head.copies:
            name = "one that copies" if decoder.copies else "one that does not copy"
            raise ConfigError(
                f"decoder: {name} does not fit this model's output layer; "
                "use: pointer is for the tasks translate and summarise"
            )
        self.prompt = prompt
        self.embed = embed
        self.decoder = decoder
        self.head = head
        self.encoder = encoder
        self.source_embed = embed if source_embed is None else source_embed

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if "step" in vars(cls):
            for name in ("whole_step", "fixed"):
                if name not in vars(cls):
                    setattr(cls, name, None)

    def start(self, source: Any, mask: Tensor) -> State:
        """Read the source and return the decoder's initial state.

        Raises:
            ShapeError: a row of the mask has no real position.
        """
        if self.encoder is None:
            return self._continued(source, mask)[1]
        masks.check_mask(mask, what="source mask")
        memory = self.encoder(self.source_embed(source), mask)
        return self.decoder.start(memory._replace(read=source), mask.shape[0])

    def max_output(self, read: int) -> int | None:
        """Maximum number of output tokens including the end, limited by positions; None for no limit.

        Args:
            read: number of source tokens.
        """
        most = most_positions(self.decoder)
        continues = self.encoder is None and self.prompt != "ignored"  # the source uses positions too
        return None if most is None else most - read * continues

    def step(self, token: Tensor, state: State) -> tuple[Tensor, State]:
        """One search step: from tokens [N] and a state to log-probabilities [N, V] and the next state."""
        self.pause()
        h, state = self.decoder(self.embed(token[:, None]), state)
        return self.head(at_step(h, 0)), state

    def features(self, batch: SequencePair) -> Any:
        """The decoder's output [B, T, D] with teacher forcing; a tree of [B, T, ..] if it copies."""
        return self.decoder(self.embed(batch.target_in), self.start(batch.source, batch.source_mask))[0]

    def loss(
        self, batch: SequencePair, *, feeding: float = 1.0, per_sequence: bool = False, parallel: bool = False
    ) -> Loss:
        """Cross-entropy of the targets.

        Args:
            batch: sources and targets.
            feeding: the probability of feeding the true token instead of the model's own.
            per_sequence: draw once per sequence instead of once per token.
            parallel: take the model's own tokens from a pass with teacher forcing, so that two passes
                suffice.
        """
        if feeding < 1.0:
            mixed = self._guessed_words if parallel else self._own_words
            h = mixed(batch, self._true(batch, feeding, per_sequence))
        elif self.prompt == "learned" and self.training:
            return self._with_prompt(batch)
        else:
            h = self.features(batch)
        return self.head.loss(h, batch.target_out, batch.target_mask)

    def free_running(self, batch: SequencePair, *, drawn: bool = True) -> Tensor:
        """The decoder's output [B, T, D] with its own tokens as input, for the length of the targets.

        Args:
            batch: sources and targets; only the length of the targets matters.
            drawn: sample the tokens; False takes the most probable ones.
        """
        nowhere = torch.zeros_like(batch.target_mask)
        return self._own_words(batch, nowhere, self._drawn if drawn else self.head.best)

    def carry_on(self, batch: SequencePair, state: State | None) -> tuple[Loss, State]:
        """The loss of a segment of a longer text and the detached state after it.

        This is truncated back-propagation: each segment starts from the state of the previous one, but
        gradients stay within a segment.

        Args:
            batch: the segment, without padding.
            state: the state after the previous segment; None at the beginning.
        """
        if state is None:
            state = self.start(batch.source, batch.source_mask)
        h, state = self.decoder(self.embed(batch.target_in), state)
        loss = self.head.loss(h, batch.target_out, batch.target_mask)
        return loss, detach(state)

    def _continued(self, source: Any, mask: Tensor) -> tuple[Tensor | None, State]:
        """The decoder's output on the prompt [B, S, D] and the state after it."""
        state = self.decoder.start(None, mask.shape[0])
        if self.prompt == "ignored":
            return None, state
        masks.check_mask(mask, what="source mask")
        return self.decoder(self.source_embed(source), state, mask)

    def _with_prompt(self, batch: SequencePair) -> Loss:
        """The loss over all tokens of prompt and target except the first of the prompt."""
        read, state = self._continued(batch.source, batch.source_mask)
        assert read is not None
        output = self.decoder(self.embed(batch.target_in), state)[0]
        h = torch.cat([read[:, :-1], output], 1)
        mask = torch.cat([batch.source_mask[:, 1:], batch.target_mask], 1)
        return self.head.loss(h, torch.cat([batch.source[:, 1:], batch.target_out], 1), mask)

    def _true(self, batch: SequencePair, feeding: float, per_sequence: bool) -> Tensor:
        """[B, T] bool: positions where the true token is fed."""
        tokens = batch.target_in
        columns = 1 if per_sequence else tokens.shape[1]
        draw = for_rows(lambda shape: uniform(shape, tokens.device), (len(tokens), columns))
        return (draw < feeding).expand(tokens.shape)

    def _guessed_words(self, batch: SequencePair, true: Tensor) -> Any:
        tokens = batch.target_in
        with torch.no_grad():
            own = self.head.best(self.features(batch), batch.target_mask)
        guessed = torch.cat([tokens[:, :1], own[:, :-1]], 1)  # the model's own input at position t + 1
        fed = torch.where(true, tokens, guessed)
        fed[:, 0] = tokens[:, 0]
        return self.decoder(self.embed(fed), self.start(batch.source, batch.source_mask))[0]

    def _drawn(self, h: Tensor, mask: Tensor) -> Tensor:
        """Sampled tokens [B, T]."""
        prob = self.head(h).exp()
        word = torch.multinomial(prob.flatten(0, 1), 1, generator=open_generator())
        return word.view(mask.shape)

    def _own_words(
        self, batch: SequencePair, true: Tensor, choose: Callable[[Tensor, Tensor], Tensor] | None = None
    ) -> Any:
        choose = choose or self.head.best
        tokens = batch.target_in
        state = self.start(batch.source, batch.source_mask)
        fed, hs = tokens[:, 0], []
        for t in range(tokens.shape[1]):
            h, state = self.decoder(self.embed(fed[:, None]), state)
            hs.append(h)
            if t + 1 < tokens.shape[1]:
                with torch.no_grad():
                    own = choose(h, batch.target_mask[:, t : t + 1])[:, 0]
                fed = torch.where(true[:, t + 1], tokens[:, t + 1], own)
        return join_steps(hs)


class LabelledBatch(Protocol):
    """A batch of sequences and labels, the training input of a Labeller."""

    @property
    def source(self) -> Any:
        """[B, S] tokens, or another input of the embedding."""

    @property
    def source_mask(self) -> Tensor:
        """[B, S] bool."""

    @property
    def target(self) -> Tensor:
        """[B], one label per sequence, with a pool; [B, S], one per position, without."""


class Labeller(nn.Module):
    """Labels a sequence as a whole (with a pool) or each of its positions (without).

    Args:
        embed: embeds the source to [B, S, D].
        encoder: reads the source.
        head: predicts labels.
        pool: reduces a sequence to one vector; None to label every position.

    Example:
        >>> from weft.nn import Categorical, Mean, RecurrentEncoder, Tokens
        >>> encoder = RecurrentEncoder(3, sizes=(5,))
        >>> model = Labeller(Tokens(7, 3), encoder, Categorical(encoder.size, 2), pool=Mean(encoder.size))
        >>> source = torch.tensor([[4, 5], [6, 0]])  # [B, S]
        >>> model(source, source > 0).shape  # [B, 1, C]; without a pool [B, S, C]
        torch.Size([2, 1, 2])
    """

    def __init__(self, embed: nn.Module, encoder: Encoder, head: Head, *, pool: Pool | None = None) -> None:
        super().__init__()
        self.embed = embed
        self.encoder = encoder
        self.pool = pool
        self.head = head

    def memory(self, source: Any, mask: Tensor) -> Memory:
        """Encode the source.

        Raises:
            ShapeError: a row of the mask has no real position.
        """
        masks.check_mask(mask, what="source mask")
        return self.encoder(self.embed(source), mask)  # type: ignore[no-any-return]

    def features(self, source: Any, mask: Tensor) -> tuple[Tensor, Tensor]:
        """The input of the head, h [B, T, D], and its mask [B, T]; T is 1 with a pool."""
        memory = self.memory(source, mask)
        if self.pool is None:
            return memory.states, memory.mask
        return self.pool(memory)[:, None], masks.derived(lambda mask: mask[:, :1], mask)

    def forward(self, source: Any, mask: Tensor) -> Any:
        """The head's predictions, for a categorical head log-probabilities [B, T, C]."""
        return self.head(self.features(source, mask)[0])

    def best(self, source: Any, mask: Tensor) -> Tensor:
        """The most probable prediction, [B, T]."""
        return self.head.best(*self.features(source, mask))

    def loss(self, batch: LabelledBatch) -> Loss:
        """The loss over all positions except padding."""
        h, mask = self.features(batch.source, batch.source_mask)
        target = batch.target if self.pool is None else batch.target[:, None]
        return self.head.loss(h, target, mask)
