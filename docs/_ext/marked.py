"""Homework for marks: every student gets other numbers, and no expected value leaves the lecturer's machine.

    python docs/_ext/marked.py build/marked NAMES.txt [LANGUAGE]

NAMES.txt has a name on each line, the seed of that student's numbers. Written are for each
handed-out/NAME/marked.ipynb; source/marked/marked.ipynb, with solutions and hidden tests for nbgrader; and
key.tsv, the numbers that are right.
Read next: notebooks.py, which writes the homework that `weft check` knows.
"""

import math
import random
import re
import sys
from pathlib import Path
from typing import Any, NamedTuple

import nbformat
from languages import catalog, messages
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook
from notebooks import NBGRADER, graded

HEAD = "Homework: the numbers are yours alone. Give at least three digits."
NAME = "Keep your name as it stands here: your numbers belong to it."
EXAMPLE = "example"
TOLERANCE = 5e-3
"""Relative; three digits are enough."""


class Question(NamedTuple):
    """A question with numbers in braces."""

    name: str  # of what the student defines
    draws: str  # code that draws the numbers from `chance`
    text: str
    answer: str  # what is right, an expression of the numbers


QUESTIONS = (
    Question(
        "perplexity",
        "a, b, c, d = (chance.randrange(1, 20) / 20 for _ in range(4))",
        "A model gives the four tokens of a text the probabilities {a}, {b}, {c} and {d}. What is its "
        "perplexity?",
        "(a * b * c * d) ** -0.25",
    ),
    Question(
        "unseen",
        "once, twice, p = chance.randrange(2, 9), chance.randrange(2, 9), chance.randrange(5, 40) / 100",
        "After a word, {once} words were counted once and {twice} words twice. The discounts are 0.5 and "
        "1. Which "
        "probability does Kneser-Ney give after it to a word that never followed and has $P(w) = {p}$?",
        "(0.5 * once + twice) / (once + 2 * twice) * p",
    ),
    Question(
        "steps",
        "u, limit = chance.randrange(80, 96) / 100, chance.choice((0.01, 0.005, 0.002, 0.001))",
        "The state is $h_t = {u} \\, h_{{t-1}}$. After how many whole steps is the gradient not above "
        "{limit}?",
        "math.ceil(math.log(limit) / math.log(u))",
    ),
    Question(
        "parameters",
        "D, H = chance.randrange(50, 400, 10), chance.randrange(50, 400, 10)",
        "How many parameters does an LSTM with {D} inputs and {H} units have?",
        "4 * H * (D + H + 1)",
    ),
    Question(
        "shown",
        "f, i, g, o = (chance.randrange(1, 20) / 20 for _ in range(4)); c = chance.randrange(5, 30) / 10",
        "A unit of an LSTM has $f = {f}$, $i = {i}$, $\\tilde c = {g}$ and $o = {o}$, and its cell state "
        "was {c}. What is its "
        "hidden state after the step?",
        "o * math.tanh(f * c + i * g)",
    ),
    Question(
        "context",
        "a, b, c = (chance.randrange(-20, 21) / 10 for _ in range(3)); x, y, z = chance.sample(range(1, "
        "10), 3)",
        "A query has the energies {a}, {b} and {c} for three states, which are the numbers {x}, {y} and "
        "{z}. What is the context?",
        "(math.exp(a) * x + math.exp(b) * y + math.exp(c) * z) / (math.exp(a) + math.exp(b) + math.exp(c))",
    ),
    Question(
        "alpha",
        "p, m = chance.randrange(10, 30) / 10, chance.randrange(3, 7); "
        "q, n = p + chance.randrange(5, 20) / 10, m + chance.randrange(2, 7)",
        "A text of {m} tokens has $\\log P = -{p}$, one of {n} tokens $\\log P = -{q:.1f}$. For which "
        "$\\alpha$ do they have the "
        "same score $\\log P / T^\\alpha$?",
        "math.log(q / p) / math.log(n / m)",
    ),
    Question(
        "wavelength",
        "D = chance.choice((64, 128, 256, 512)); k = chance.randrange(1, D // 4)",
        "Sinusoidal positions have {D} features. After how many positions does pair number $k = {k}$, "
        "counted from 0, repeat?",
        "2 * math.pi * 10000 ** (2 * k / D)",
    ),
    Question(
        "blocks",
        "N, D = chance.randrange(2, 25), chance.randrange(128, 1025, 64)",
        "How many parameters do {N} Transformer blocks of {D} features have, with biases, two norms each "
        "and a feed-forward "
        "layer of four times the width?",
        "N * (12 * D**2 + 13 * D)",
    ),
    Question(
        "half",
        "decay = chance.randrange(9500, 9999) / 10000",
        "A state decays by the factor {decay} at every step. After how many steps is one half left?",
        "math.log(0.5) / math.log(decay)",
    ),
    Question(
        "error",
        "k, s = chance.randrange(3, 12), chance.randrange(2, 30) / 10",
        "Each of two systems was trained with {k} seeds; both have the standard deviation {s}. What is "
        "the standard error of the "
        "difference of their means?",
        "s * math.sqrt(2 / k)",
    ),
)


def drawing(question: Question) -> str:
    """Code that draws the numbers of a question for the name in `student`."""
    return f'chance = random.Random(f"{{student.strip().casefold()}}/{question.name}")\n{question.draws}'


def numbers(question: Question, student: str) -> dict[str, Any]:
    """The numbers of a student's question, and `math`."""
    names: dict[str, Any] = {"math": math, "random": random, "student": student}
    exec(drawing(question), names)  # the code of this file, which the hidden tests run too
    return names


def right(question: Question, student: str) -> float:
    """What the student should find."""
    return float(eval(question.answer, numbers(question, student)))


def notebook(student: str, words: dict[str, str], *, solved: bool) -> nbformat.NotebookNode:
    """The notebook of a student; `solved` is the lecturer's, with solutions and hidden tests."""

    def said(text: str) -> str:
        return words.get(text, text)

    cells = [new_markdown_cell(f"**{said(HEAD)}**"), new_code_cell(f"# {said(NAME)}\nstudent = {student!r}")]
    for place, one in enumerate(QUESTIONS, 1):
        given = numbers(one, student)
        cells.append(new_markdown_cell(f"**{place}.** {said(one.text).format(**given)}"))
        drawn = f"import math\nimport random\n\n{drawing(one)}"
        solution = f"### BEGIN SOLUTION\n{drawn}\n{one.name} = {one.answer}\n### END SOLUTION"
        code = solution if solved else f"{one.name} = None  # YOUR CODE HERE"
        cells.append(graded(new_code_cell(code), one.name, grade=False, solution=True))
        test = f"assert math.isclose({one.name}, {one.answer}, rel_tol={TOLERANCE})"
        hidden = f"### BEGIN HIDDEN TESTS\n{drawn}\n{test}\n### END HIDDEN TESTS"
        test = f"assert {one.name} is not None" + (f"\n{hidden}" if solved else "")
        cells.append(graded(new_code_cell(test), f"test-{one.name}", grade=True, solution=False))
    for place, cell in enumerate(cells):
        cell["id"] = f"cell-{place}"
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    return new_notebook(cells=cells, metadata={"kernelspec": kernel})


def write(out: Path, students: list[str], language: str = "en") -> None:
    """Writes the notebooks and the key."""
    words = messages(catalog(language, "marked"))
    folders = [re.sub(r"[^\w.-]+", "-", student) for student in students]
    if len({one.casefold() for one in folders}) < len(students):
        raise ValueError("two names are alike; add something to one of them")
    books = {
        f"handed-out/{at}": notebook(student, words, solved=False)
        for at, student in zip(folders, students, strict=True)
    }
    for folder, book in {"source/marked": notebook(EXAMPLE, words, solved=True), **books}.items():
        (out / folder).mkdir(parents=True, exist_ok=True)
        nbformat.write(book, out / folder / "marked.ipynb")
    rows = [[student, *(f"{right(one, student):.6g}" for one in QUESTIONS)] for student in students]
    lines = [["student", *(one.name for one in QUESTIONS)], *rows]
    (out / "key.tsv").write_text("".join("\t".join(row) + "\n" for row in lines), "utf-8")
    (out / "nbgrader_config.py").write_text(NBGRADER, "utf-8")


if __name__ == "__main__":
    if not Path(sys.argv[2]).is_file():
        sys.exit(f"{sys.argv[2]}: no such file; write the students' names into it, one on each line")
    listed = [line.strip() for line in Path(sys.argv[2]).read_text("utf-8").splitlines() if line.strip()]
    write(Path(sys.argv[1]), listed, *sys.argv[3:])
    print(f"{sys.argv[1]}: {len(listed)} notebooks, source/marked for nbgrader, and key.tsv")
