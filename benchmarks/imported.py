"""How fast a GPT and an encoder learn here, beside `transformers` with the same weights, batch and loss.

    python benchmarks/imported.py --dtype float32 --rounds 7

makes a random GPT-2 and a random BERT with the library, imports them (weft.importing), sees that both give
the same loss, and lets the two take turns on whole updates (forward, backward, AdamW), dropout off. It
prints tokens a CPU second, and Weft's as a ratio, the median of the rounds' own ratios.
Needs transformers: pip install --group import-tests -c constraints.txt
"""

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import torch
import transformers
from torch import Tensor, nn

from weft.importing.families import import_model
from weft.nn.kernels.dropout import Dropout

TOKENS = 5003
DEFAULTS = {"layers": 6, "size": 384, "heads": 6, "length": 128, "rows": 8, "rounds": 7}


class Batch(NamedTuple):
    """Token windows for a Generator (GPT) or a Labeller (BERT)."""

    source: Tensor
    source_mask: Tensor
    target: Tensor
    target_in: Tensor
    target_out: Tensor
    target_mask: Tensor


def gpt2(options: argparse.Namespace) -> nn.Module:
    config = transformers.GPT2Config(
        vocab_size=TOKENS,
        n_positions=options.length,
        n_embd=options.size,
        n_layer=options.layers,
        n_head=options.heads,
        bos_token_id=0,
        eos_token_id=0,
        resid_pdrop=0.0,
        embd_pdrop=0.0,
        attn_pdrop=0.0,
    )
    return transformers.GPT2LMHeadModel(config)


def bert(options: argparse.Namespace) -> nn.Module:
    config = transformers.BertConfig(
        vocab_size=TOKENS,
        hidden_size=options.size,
        num_hidden_layers=options.layers,
        num_attention_heads=options.heads,
        intermediate_size=4 * options.size,
        max_position_embeddings=options.length,
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
    )
    return transformers.BertForMaskedLM(config)


def updates(model: nn.Module, loss: Callable[[], Tensor], dtype: torch.dtype) -> Callable[[], float]:
    """One update of the model; gives its loss."""
    optimiser = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)

    def update() -> float:
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=dtype == torch.bfloat16):
            value = loss()
        value.backward()
        optimiser.step()
        optimiser.zero_grad()
        return value.item()

    return update


def measure(name: str, theirs: nn.Module, options: argparse.Namespace) -> None:
    """Import, compare the losses, take turns, print a row."""
    with tempfile.TemporaryDirectory() as folder:
        theirs.save_pretrained(folder)
        ours = import_model(Path(folder)).train()
    for part in ours.modules():
        if isinstance(part, Dropout):
            part.share = 0.0
    theirs.train()
    words = torch.randint(4, TOKENS, (options.rows, options.length))
    real = torch.ones_like(words, dtype=torch.bool)
    inputs, after = words[:, :-1], words[:, 1:]
    if name == "gpt2":
        batch = Batch(words, real[:, :1], words, inputs, after, real[:, 1:])

        def their_loss() -> Tensor:
            logits = theirs(inputs, use_cache=False).logits.flatten(0, 1)
            return nn.functional.cross_entropy(logits.float(), after.flatten())
    else:
        batch = Batch(words, real, words, inputs, after, real)

        def their_loss() -> Tensor:
            return nn.functional.cross_entropy(theirs(words).logits.flatten(0, 1).float(), words.flatten())

    dtype = getattr(torch, options.dtype)
    engines = {
        "weft": updates(ours, lambda: ours.loss(batch).mean, dtype),
        "transformers": updates(theirs, their_loss, dtype),
    }
    first = {engine: update() for engine, update in engines.items()}
    assert abs(first["weft"] - first["transformers"]) < (1e-4 if dtype == torch.float32 else 0.05), first
    speeds: dict[str, list[float]] = {engine: [] for engine in engines}
    for _ in range(options.rounds):
        for engine, update in engines.items():
            begun = time.process_time()
            update()
            speeds[engine].append(words.numel() / (time.process_time() - begun))
    ratio = statistics.median(a / b for a, b in zip(speeds["weft"], speeds["transformers"], strict=True))
    shown = "  ".join(f"{engine} {statistics.median(each):8,.0f}" for engine, each in speeds.items())
    count = sum(parameter.numel() for parameter in theirs.parameters())
    print(f"{name:5} {count / 1e6:.1f} M, {options.dtype}: {shown} tokens a CPU second; ratio {ratio:.2f}")


def main() -> None:
    """Read the options, measure both."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    for name, default in DEFAULTS.items():
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--dtype", choices=["float32", "bfloat16"], default="float32")
    options = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(1)
    transformers.utils.logging.disable_progress_bar()
    print(
        f"torch {torch.__version__}, transformers {transformers.__version__}, one thread, "
        f"{options.rows} rows of {options.length} tokens"
    )
    measure("gpt2", gpt2(options), options)
    measure("bert", bert(options), options)


if __name__ == "__main__":
    main()
