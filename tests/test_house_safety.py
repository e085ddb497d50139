"""Nothing in the source runs code from a file, names one machine, or names a package registry.

Read next: test_house.py, the other rules.
"""

import ast
import re
from pathlib import Path

import pytest

from tests.source import PYTHON, ROOT, broken, imported, name_of, nodes, text_of

PICKLES = {"pickle", "cPickle", "dill", "cloudpickle", "shelve", "marshal", "joblib", "yaml"}
MACHINE = re.compile(r"/(?<![\w.~$}>]/)(?:home|root|work|tmp|mnt|Users)/\w")
REGISTRY = re.compile(
    r"(?:pypi|pythonhosted|pytorch|npmjs)\.org\b(?!/docs)|\.\./shared/(?:data|export|house|speed)\b"
)

TEXTS = PYTHON + [
    path
    for pattern in ("*.md", "*.toml", "*.txt", "Makefile", "docs/**/*.md", "recipes/**/*.yaml")
    for path in ROOT.glob(pattern)
]


RUNS_ANSWERS = "weft/commands/check.py: "
"""`weft check` runs the answer that a student wrote, as `python FILE` would: its command says so."""


def forbidden(source: str) -> list[str]:
    """Calls and imports that would let a file run code."""
    wrong = [f"line {line}: {name}" for line, name in imported(source) if name.split(".")[0] in PICKLES]
    for node in nodes(source):
        if not isinstance(node, ast.Call):
            continue
        called = ast.unparse(node.func)
        keywords = {word.arg for word in node.keywords}
        if called in {"eval", "exec", "__import__", "torch.save", "torch.load", "yaml.load", "os.system"}:
            wrong.append(f"line {node.lineno}: {called}")
        elif "allow_pickle" in keywords:
            wrong.append(f"line {node.lineno}: {called} with allow_pickle")
    return wrong


def test_nothing_reads_or_runs_code_from_a_file() -> None:
    found = broken(lambda path: forbidden(text_of(path)))
    assert [one for one in found if not one.startswith(RUNS_ANSWERS)] == []


def test_no_file_names_one_machine() -> None:
    found = [
        f"{name_of(path)}:{number}: {line.strip()[:90]}"
        for path in TEXTS
        if MACHINE.search(text_of(path)) or REGISTRY.search(text_of(path))
        for number, line in enumerate(text_of(path).split("\n"), 1)
        if path != Path(__file__).resolve() and (MACHINE.search(line) or REGISTRY.search(line))
    ]
    assert found == []


@pytest.mark.parametrize(
    "source",
    [
        "import pickle",
        "from joblib import load",
        "torch.load(path)",
        "torch.save(x, f)",
        "eval('1')",
        "exec(text)",
        "np.load(path, allow_pickle=True)",
        "yaml.load(text)",
    ],
)
def test_a_forbidden_call_is_seen(source: str) -> None:
    assert forbidden(source)
    assert not forbidden("model.eval(); np.load(path); safe.load_file(path); re.compile('x')")
