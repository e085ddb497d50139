"""Rules for the source, checked by reading it; nothing of weft is imported, except in a new interpreter."""

import ast
import functools
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from tests.source import PACKAGE, PYTHON, ROOT, broken, imported, name_of, nodes, parsed, text_of

GROUND = {
    *("errors", "lazy", "tree", "shapes", "masks", "probe", "rooms", "setting_types", "store", "native"),
    *("version", "wording", "words"),
}
SIDE = {"search", "metrics", "text", "data", "ngram"}
# Each imports those before it.
ORDER = ["nn", "models", "diagnose", "tasks", "train", "config", "run"]
LEAVES = {"inspect", "serve", "export", "importing", "tune"}

ALLOWED = dict.fromkeys(SIDE, GROUND)
ALLOWED["documents"] = GROUND | {"text", "data"}
ALLOWED |= {room: GROUND | set(ORDER[:place]) for place, room in enumerate(ORDER)}
for _room in ("tasks", "train", "config", "run"):
    ALLOWED[_room] = ALLOWED[_room] | SIDE | {"figures"}
ALLOWED["figures"] = GROUND | {"metrics"}
ALLOWED |= {room: GROUND | SIDE | {"figures", "documents"} | set(ORDER) for room in LEAVES}
ALLOWED["serve"] = ALLOWED["serve"] | {"inspect"}  # its page opens the page of `weft inspect`
ALLOWED["serve"] = ALLOWED["serve"] | {"machine"}  # its workers end with their parent
ALLOWED["commands"] = GROUND | SIDE | {"figures", "documents"} | set(ORDER) | LEAVES
ALLOWED["cli"] = ALLOWED["commands"] | {"commands"}
ALLOWED["testing"] = GROUND | SIDE | {"nn"}
ALLOWED["sklearn"] = GROUND | {"fitting", "tasks"}
ALLOWED["tune"] = ALLOWED["tune"] | {"machine"}  # recipes for it
ALLOWED["fitting"] = GROUND | SIDE | set(ORDER) | {"tune"}
ALLOWED |= {"__init__": ALLOWED["cli"] | {"fitting"}, "__main__": {"cli"}}
ALLOWED |= {"machine": set(), "version": set()}
ALLOWED["commands"] = ALLOWED["commands"] | {"machine", "testing"}
ALLOWED["cli"] = ALLOWED["cli"] | {"machine"}
ALLOWED |= {
    "lazy": {"errors"},
    "wording": set(),
    "words": set(),
    "errors": {"wording"},
    "tree": {"errors"},
    "shapes": {"errors"},
    "probe": {"errors"},
    "masks": {"errors", "shapes", "probe"},
    "rooms": {"errors", "wording"},
    "setting_types": {"errors"},
    "store": {"errors", "version", "wording"},
    "native": set(),
}

# Each library is imported in few packages, so that it can be replaced or missing.
EVERYWHERE = set(ALLOWED) - {"cli", "__main__", "__init__"}
NUMBERS = EVERYWHERE - GROUND - {"search", "nn", "models", "config"}
HOMES = {
    "torch": EVERYWHERE - {"text"},
    "numpy": NUMBERS,
    "tokenizers": {"text", "export"},
    "ctranslate2": {"export"},
    "transformers": {"export"},
    "sentencepiece": {"text", "export"},
    "zstandard": {"data"},
    "pandas": {"data", "tasks", "commands"},
    "python_calamine": {"data"},
    "soundfile": {"data", "export"},
    "av": {"data"},
    "chardet": {"data"},
    "regex": {"words", "text", "data", "documents", "metrics", "tasks"},
    "msgspec": {"store", "serve"},
    "sacrebleu": {"metrics"},
    "nltk": {"metrics"},
    "pyarrow": {"data"},
    "PIL": {"data", "tasks", "export"},
    "ruamel": {"config"},
    "safetensors": {"store", "train", "run", "export", "importing", "testing"},
    "tensorboardX": {"train"},
    "IPython": {"train"},
    "sklearn": {"sklearn"},
    "matplotlib": {"figures", "inspect"},
    "rich": {"train", "inspect", "commands"},
    "click": {"cli", "commands"},
    "fastapi": {"serve"},
    "pydantic": {"serve"},
    "pydantic_core": {"serve"},
    "typing_extensions": {"serve"},
    "starlette": {"serve"},
    "uvicorn": {"serve"},
    "prometheus_client": {"serve"},
    "ray": {"commands"},
    "optuna": {"tune"},
    "onnx": {"export"},
    "onnxruntime": {"export"},
    "onnxscript": {"export"},
}
HEAVY = [
    *("torch", "numpy", "tokenizers", "matplotlib", "rich", "ruamel", "sacrebleu", "safetensors"),
    *("PIL", "pandas"),
]
LONG: set[str] = set()
"""Functions above 60 lines that are still to be split; the list may only get shorter."""

SHARED = {
    # a schema of the server's answers, named in its OpenAPI description
    "Cell",
    # drop-in replacements for torch.nn's
    *("GRU", "LSTM"),
    # estimators of weft.sklearn, called as scikit-learn calls such things
    *("Classifier", "Forecaster", "Tagger"),
}
"""Names of several public classes; the list may only get shorter."""


def room_of(path: Path) -> str:
    first = path.relative_to(ROOT / "weft").parts[0]
    return first.removesuffix(".py")


def wrong_imports(source: str, room: str) -> list[str]:
    """Imports that are not allowed in this package; other packages may be named in types."""
    wrong, for_types = [], lines_for_types(source)
    for line, name in imported(source):
        top, _, rest = name.partition(".")
        part = rest.partition(".")[0]
        if name.startswith("."):
            wrong.append(f"line {line}: relative import {name}")
        elif top == "weft" and part not in {"__version__", room} | ALLOWED[room]:
            wrong.append(f"line {line}: {room} may not import weft.{part}")
        elif top != "weft" and line in for_types:
            continue
        elif top != "weft" and top not in sys.stdlib_module_names and room not in HOMES.get(top, set()):
            wrong.append(f"line {line}: {room} may not import {top}")
    return wrong


def lines_for_types(source: str) -> set[int]:
    """The lines below `if TYPE_CHECKING:`, which are not executed."""
    return {
        line
        for node in nodes(source)
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
        for line in range(node.lineno, (node.end_lineno or 0) + 1)
    }


def undocumented(source: str, documented: set[str]) -> list[str]:
    """Public classes, functions and methods without a docstring; overrides inherit that of a base."""
    bare = []
    for node in parsed(source).body:
        if not isinstance(node, ast.ClassDef | ast.FunctionDef) or node.name.startswith("_"):
            continue
        if not ast.get_docstring(node) and not overloads(node):
            bare.append(f"line {node.lineno}: {node.name}")
        for method in node.body if isinstance(node, ast.ClassDef) else []:
            if isinstance(method, ast.FunctionDef) and not method.name.startswith("_"):
                inherited = isinstance(node, ast.ClassDef) and node.bases and method.name in documented
                known = ast.get_docstring(method) or inherited or overloads(method)
                bare += [] if known else [f"line {method.lineno}: {node.name}.{method.name}"]
    return bare


def overloads(method: ast.FunctionDef | ast.ClassDef) -> bool:
    return any(ast.unparse(mark) in {"overload", "override"} for mark in method.decorator_list)


@functools.cache
def documented_methods() -> set[str]:
    """The names of all methods that some class documents."""
    return {
        method.name
        for path in PACKAGE
        for node in nodes(text_of(path))
        if isinstance(node, ast.ClassDef)
        for method in node.body
        if isinstance(method, ast.FunctionDef) and ast.get_docstring(method)
    }


def test_every_room_has_its_place() -> None:
    unknown = sorted({room_of(path) for path in PACKAGE} - set(ALLOWED))
    assert not unknown, f"say in tests/test_house.py what {unknown} may import"


def test_imports_point_downward() -> None:
    assert broken(lambda path: wrong_imports(text_of(path), room_of(path))) == []


def test_public_names_have_docstrings() -> None:
    assert broken(lambda path: undocumented(text_of(path), documented_methods())) == []


def test_files_say_what_they_are() -> None:
    bare = [path for path in PYTHON if text_of(path) and not ast.get_docstring(parsed(text_of(path)))]
    assert bare == [], "a docstring at the top says what a file is and what to read next"


def class_names() -> Counter[str]:
    """How often each public class name occurs in the package."""
    return Counter(
        node.name
        for path in PACKAGE
        for node in nodes(text_of(path))
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_")
    )


def test_a_class_name_leads_home() -> None:
    twice = {name for name, count in class_names().items() if count > 1}
    assert twice - SHARED == set(), "another public class has this name: choose one that says which it is"
    assert SHARED - twice == set(), "SHARED names classes that are unique now: remove them there"


def long_functions(source: str) -> list[str]:
    """Names of functions with more than 60 lines, from `def` to their last line."""
    return [
        node.name
        for node in nodes(source)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and (node.end_lineno or 0) - node.lineno >= 60
    ]


def test_functions_fit_on_a_screen() -> None:
    found = {f"{name_of(path)}:{name}" for path in PACKAGE for name in long_functions(text_of(path))}
    assert found - LONG == set(), "split them: a function has at most 60 lines"
    assert LONG - found == set(), "LONG names functions that are short now: remove them there"


def test_a_long_function_is_seen() -> None:
    assert long_functions("def f():\n" + "    pass\n" * 60) == ["f"]
    assert long_functions("def f():\n" + "    pass\n" * 59) == []


@pytest.mark.parametrize(
    ("arguments", "heavy"),
    [
        ([], HEAVY),
        (["--help"], HEAVY),
        (["--version"], HEAVY),
        (["init", "--help"], ["torch"]),
        (["inspect", "--help"], HEAVY),
    ],
    ids=str,
)
def test_the_command_line_starts_without_torch(arguments: list[str], heavy: list[str]) -> None:
    code = (
        "import sys\nfrom weft.cli import main\n"
        f"sys.argv = ['weft', *{arguments}]\n"
        "try:\n    main() if sys.argv[1:] else None\nexcept SystemExit as leave:\n    assert not leave.code\n"
        f"print('loaded:', *[name for name in {heavy} if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, check=False)
    assert done.stdout.rstrip().endswith("loaded:"), done.stdout + done.stderr


@pytest.mark.parametrize(
    ("source", "room", "sentence"),
    [
        ("import weft.train.loop", "nn", "nn may not import weft.train"),
        (
            "def f():\n    from weft.models import Generator",
            "search",
            "line 2: search may not import weft.models",
        ),
        ("from weft import text", "data", "data may not import weft.text"),
        ("from weft.data import lines", "text", "text may not import weft.data"),
        ("from ..tree import State", "nn", "relative import"),
        ("import torch", "cli", "cli may not import torch"),
        ("from matplotlib import pyplot", "train", "train may not import matplotlib"),
        ("import requests", "tasks", "tasks may not import requests"),
    ],
)
def test_a_wrong_import_is_seen(source: str, room: str, sentence: str) -> None:
    assert sentence in "; ".join(wrong_imports(source, room))


def modules_imported(source: str, modules: set[str]) -> set[str]:
    """Those of `modules` that a source imports."""
    names: set[str] = set()
    for node in nodes(source):
        inner = set(_imported(node))
        names |= inner
        if isinstance(node, ast.ImportFrom) and node.module and not inner <= modules:
            names.add(node.module)
    return names & modules


def circles(graph: dict[str, set[str]]) -> list[list[str]]:
    """Every set of modules that import each other, sorted."""
    reached: dict[str, set[str]] = {}
    for start in graph:
        seen: set[str] = set()
        waiting = [start]
        while waiting:
            new = graph[waiting.pop()] - seen
            seen |= new
            waiting.extend(new)
        reached[start] = seen
    groups = {
        tuple(sorted(other for other in seen if name in reached[other]))
        for name, seen in reached.items()
        if name in seen
    }
    return sorted(map(list, groups))


def weft_imports() -> dict[str, set[str]]:
    files = {}
    for path in PACKAGE:
        parts = path.relative_to(ROOT).with_suffix("").parts
        files[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    sources = {name: text_of(path) for name, path in files.items()}
    return {name: modules_imported(source, set(files)) - {name} for name, source in sources.items()}


def test_imports_make_no_circle() -> None:
    assert circles(weft_imports()) == []


def test_a_circle_is_found() -> None:
    assert circles({"a": {"b"}, "b": {"c"}, "c": {"b"}, "d": {"a"}}) == [["b", "c"]]
    typed = "if TYPE_CHECKING:\n    from weft.b import B\n"
    late = "def f():\n    from weft.c import C\n    from weft import d\n"
    known = {"weft.b", "weft.c", "weft.d"}
    assert modules_imported(typed + late, {"weft", *known}) == known


OUTSIDE = {"ruamel.yaml", "config.yaml", "weft_onnx.py", "RUN/recipe.yaml", "RUN/README.md", "darts.h"}
"""Named in docstrings, and no files of ours."""

FILES = re.compile(r"(?<![<>\w./-])[\w./-]+\.(?:py|js|cpp|h|yaml|md)\b")


def missing(path: Path) -> list[str]:
    """Files that the docstring of a file names, and that are not there."""
    said = ast.get_docstring(parsed(text_of(path))) or ""
    places = (path.parent, path.parent.parent, ROOT / "weft", ROOT)
    names = sorted(set(FILES.findall(said)) - OUTSIDE)
    return [name for name in names if not any((place / name).exists() for place in places)]


def test_files_that_a_docstring_names_are_there() -> None:
    assert broken(missing) == []


TASKS = {path.parent.name for path in (ROOT / "weft" / "tasks").glob("*/task.py")}
NAMES_A_TASK = {
    # Words of a file's format, a table's header, a legend, an option, a view or the server's JSON that also
    # name a task.
    "weft/commands/inspect.py",
    "weft/data/images.py",
    "weft/data/guess.py",
    "weft/documents/html.py",
    "weft/documents/memories.py",
    "weft/figures/series.py",
    "weft/importing/kits/eole.py",
    "weft/importing/kits/joeynmt.py",
    "weft/inspect/views/curves.py",
    "weft/serve/translation.py",
    "weft/serve/watching.py",
    "weft/tasks/pictures/recipe.py",
    "weft/tasks/pictures/data.py",
    # The demo is a translator, estimators and imported checkpoints are for one task, an n-gram model is of a
    # language model's text.
    "weft/commands/demo.py",
    "weft/sklearn.py",
    "weft/commands/ngram.py",
    "weft/importing/plans.py",
}
"""Files that may name a task outside its folder; take one away when it no longer does, add none."""


def named_tasks(source: str, own: str = "") -> list[str]:
    """Where a file names a task other than its own, as a string or in an import."""
    wrong = []
    for node in nodes(source):
        if isinstance(node, ast.Constant) and node.value in TASKS - {own}:
            wrong.append(f"line {node.lineno}: {node.value!r}")
        for name in _imported(node):
            if name.startswith("weft.tasks.") and name.split(".")[2] in TASKS - {own}:
                wrong.append(f"line {getattr(node, 'lineno', 0)}: {name}")
    return wrong


def _imported(node: ast.AST) -> list[str]:
    if isinstance(node, ast.Import):
        return [name.name for name in node.names]
    if isinstance(node, ast.ImportFrom) and node.module:
        return [f"{node.module}.{name.name}" for name in node.names]
    return []


def task_of(path: Path) -> str:
    """The task whose folder holds a file; "" outside of them."""
    parts = path.relative_to(ROOT).parts
    return parts[2] if parts[:2] == ("weft", "tasks") and parts[2] in TASKS else ""


def elsewhere(path: Path) -> list[str]:
    return [] if name_of(path) in NAMES_A_TASK else named_tasks(text_of(path), task_of(path))


def test_a_task_is_named_in_its_own_folder_only() -> None:
    assert broken(elsewhere) == []


@pytest.mark.parametrize(
    ("source", "own", "count"),
    [
        ('if opened.name == "forecast": pass', "", 1),
        ('if opened.name in ("forecast", "memory"): pass', "memory", 1),
        ("from weft.tasks.translate.model import PairModel", "classify", 1),
        ("import weft.tasks.tag.task", "", 1),
        ("from weft.tasks.init import planned", "", 0),
        ('"""The forecast."""\nkind = "forecasts"', "", 0),
    ],
)
def test_a_task_named_elsewhere_is_seen(source: str, own: str, count: int) -> None:
    assert len(named_tasks(source, own)) == count
