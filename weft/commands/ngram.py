"""weft ngram: count n-gram models from text, and score text with them (ARPA files)."""

import sys
from pathlib import Path
from typing import Any

import click

from weft.commands.outputs import check_outputs, output_option
from weft.wording import plural


@click.group(no_args_is_help=True)
def command() -> None:
    """Count an n-gram language model, or score text with one.

    Models use modified Kneser-Ney smoothing and are stored as ARPA files.
    """


@command.command("count", short_help="Count a model from text.")
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--order", type=int, metavar="N", default=5, help="Length of the longest n-grams, in tokens.")
@click.option(
    "--kind",
    type=click.Choice(["space", "character"]),
    default="space",
    help="Tokens: words separated by white space, or single characters (a space is written as ▁).",
)
@output_option("--output", "-o", required=True, help="ARPA file to write.")
def count(file: Path, order: int, kind: str, output: Path) -> None:
    """Count an n-gram model from FILE, one sentence per line, and write it as an ARPA file.

    A word <unk> in FILE counts as an ordinary word (as in SRILM with -unk; KenLM's lmplz rejects or drops it)
    and also gets its share of the probability that smoothing reserves for unseen words.

    \b
    Examples:
      weft ngram count train.txt --order 5 -o train.arpa
    """  # noqa: D301  click reads the \b
    from weft.commands import outputs
    from weft.data.plain import PlainText
    from weft.ngram.arpa import END, START, arpa_lines, counts
    from weft.ngram.kneser_ney import kneser_ney
    from weft.tasks.language.data import encode
    from weft.tasks.language.scoring import with_starts
    from weft.text.vocabulary import EOS, PAD, SOS, Vocabulary

    check_outputs()
    text = PlainText(file)
    vocabulary = Vocabulary.train(text, kind=kind, size=None, form="none")
    tokens = with_starts(encode(text, vocabulary, str(file)).tokens, bound=True)
    model = kneser_ney(tokens, size=len(vocabulary), order=order, start=SOS, never=(PAD,))
    words = vocabulary.pieces(range(len(vocabulary)))
    if kind == "space":
        words = [word.removeprefix("▁") for word in words]
    words[PAD], words[SOS], words[EOS] = "", START, END
    outputs.write(output, "".join(f"{line}\n" for line in arpa_lines(model, words)))
    sizes = ", ".join(f"{count:,}" for count in counts(model, words))
    guessed = "; the text is short, so some discounts are guesses" if model.fallback else ""
    click.echo(f"{output}: n-grams of orders 1 to {order}: {sizes}{guessed}")


@command.command("score", short_help="Score each line of a text with a model.")
@click.argument("model", type=click.Path(path_type=Path))
@click.argument("file", type=click.Path(path_type=Path), required=False)
@click.option(
    "--kind",
    type=click.Choice(["space", "character"]),
    default="space",
    help="Tokens of the model, as in weft ngram count.",
)
def score(model: Path, file: Path | None, kind: str) -> None:
    """Score each line of FILE, or of standard input, with the ARPA file MODEL.

    Prints the log10 probability of each line (including </s>), a tab and the line. The perplexity of all
    lines, including </s> and unknown words, goes to standard error.

    \b
    Examples:
      weft ngram score train.arpa valid.txt > scores.tsv
    """  # noqa: D301  click reads the \b
    import numpy as np

    from weft.data.lines import read_lines
    from weft.ngram.arpa import END, START, UNKNOWN, read_arpa

    arpa = read_arpa(read_lines(model), str(model))
    number: dict[str, int] = {word: place for place, word in enumerate(arpa.words)}
    unknown = number.get(UNKNOWN, -1)
    total, tokens, lost = 0.0, 0, 0
    source: Any = sys.stdin.buffer if file is None else file
    for line in read_lines(source):
        words = ["▁" if mark == " " else mark for mark in line] if kind == "character" else line.split()
        row = [number.get(word, unknown) for word in words]
        lost += row.count(unknown)
        known = [token for token in row if token >= 0]
        logp = float(arpa.model.score(np.array([number[START], *known, number[END]])).sum())
        total, tokens = total + logp, tokens + len(known) + 1
        click.echo(f"{logp / np.log(10):.4f}\t{line}")
    if tokens:
        without = f", {plural(lost, 'unknown word')}" + ("" if unknown >= 0 else " left out")
        click.echo(
            f"perplexity {np.exp(-total / tokens):.2f}, {plural(tokens, 'token')} with </s>{without}",
            err=True,
        )
