"""weft ngram: n-gram models as ARPA files, counted from text or asked about one."""

import sys
from pathlib import Path
from typing import Any

import click


@click.group(short_help="Count an n-gram model, or score text with one.", no_args_is_help=True)
def command() -> None:
    """N-gram language models with modified Kneser-Ney smoothing, as ARPA files."""


@command.command("count", short_help="Write the ARPA file of a text.")
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--order", type=int, default=5, show_default=True, help="Tokens of the longest n-grams.")
@click.option(
    "--kind",
    type=click.Choice(["space", "character"]),
    default="space",
    show_default=True,
    help="Words between white space, or characters (a space is written as ▁).",
)
@click.option("--output", "-o", type=click.Path(path_type=Path), required=True, help="ARPA file to write.")
def count(file: Path, order: int, kind: str, output: Path) -> None:
    """Count the n-grams of FILE, a sentence a line; contexts end with the line.

    A word <unk> in FILE is a word of the model like any other (SRILM with -unk; KenLM's lmplz refuses it or
    drops it), and has its share of what smoothing leaves for words that were never seen.

    \b
    weft ngram count train.txt --order 5 -o train.arpa
    """  # noqa: D301  click reads the \b
    from weft.commands import outputs
    from weft.data.plain import PlainText
    from weft.ngram.arpa import END, START, counts, write
    from weft.ngram.kneser_ney import kneser_ney
    from weft.tasks.language.mixture import with_starts
    from weft.tasks.language.stream import encode
    from weft.text.vocabulary import EOS, PAD, SOS, Vocabulary

    outputs.check(output)
    text = PlainText(file)
    vocabulary = Vocabulary.train(text, kind=kind, size=None, form="none")
    tokens = with_starts(encode(text, vocabulary, str(file)).tokens, bound=True)
    model = kneser_ney(tokens, size=len(vocabulary), order=order, start=SOS, never=(PAD,))
    words = vocabulary.pieces(range(len(vocabulary)))
    if kind == "space":
        words = [word.removeprefix("▁") for word in words]
    words[PAD], words[SOS], words[EOS] = "", START, END
    outputs.write(output, "".join(f"{line}\n" for line in write(model, words)))
    sizes = ", ".join(f"{count:,}" for count in counts(model, words))
    guessed = "; some discounts were guessed, the text is short" if model.fallback else ""
    click.echo(f"{output}: n-grams of orders 1 to {order}: {sizes}{guessed}")


@command.command("score", short_help="The log-probability of each line under an ARPA file.")
@click.argument("model", type=click.Path(path_type=Path))
@click.argument("file", type=click.Path(path_type=Path), required=False)
@click.option("--kind", type=click.Choice(["space", "character"]), default="space", show_default=True)
def score(model: Path, file: Path | None, kind: str) -> None:
    """Score each line of FILE, or of standard input: log10 p (with </s>), a tab, the line.

    The perplexity of all lines, </s> and unknown words counted, goes to standard error.

    \b
    weft ngram score train.arpa valid.txt > scores.tsv
    """  # noqa: D301  click reads the \b
    import numpy as np

    from weft.data.lines import read_lines
    from weft.ngram.arpa import END, START, UNKNOWN, read

    arpa = read(read_lines(model), str(model))
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
        without = f", {lost:,} unknown words" + ("" if unknown >= 0 else " left out")
        click.echo(
            f"perplexity {np.exp(-total / tokens):.2f}, {tokens:,} tokens with </s>{without}", err=True
        )
