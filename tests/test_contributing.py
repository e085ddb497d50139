"""CONTRIBUTING.md says which files a new part touches: each kind is added here, in a plugin.

What is added in Weft itself is the same class in a file of its room. Read next: commands/test_task_plugin.py,
a whole task; docs/test_pages.py.
"""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from tests.commands import labelled
from tests.commands.corpus import make
from tests.commands.shell import refused, weft
from tests.plugins import package
from tests.source import ROOT
from weft.models import Labeller
from weft.nn.encoders.recurrent import RecurrentEncoder
from weft.nn.heads.categorical import Categorical
from weft.tasks.labels.base import LabelBatch

PACKAGE = "my_kinds_of_weft"
PLUGIN = "--plugin", PACKAGE
SHORT = "training.max_updates=2", "training.validate_every=2"


def code(page: str) -> str:
    """The first Python example of a page."""
    return (ROOT / page).read_text("utf-8").partition("```python")[2].partition("```")[0]


FILES = {
    "cell": code("CONTRIBUTING.md"),
    "metric": code("docs/guides/add-a-metric.md"),
    "score": """
from torch import nn
from weft.nn.scores import Score

class Doubled(Score):
    def __init__(self, query_size, key_size, *, factor: float = 2.0):
        super().__init__(query_size, key_size)
        self.factor, self.project = factor, nn.Linear(key_size, query_size)

    def prepare(self, keys):
        return self.project(keys)

    def forward(self, query, keys):
        return self.factor * query @ keys.mT
""",
    "encoder": """
import torch
from weft import masks
from weft.nn.encoders.encoder import Encoder, Memory
from weft.nn.ops import Linear

class Wordwise(Encoder):
    def __init__(self, in_size, *, size: int = 7):
        super().__init__()
        self.size, self.product = size, Linear(in_size, size)

    def forward(self, x, mask):
        x, mask = self.check(x, mask)
        h = torch.tanh(self.product(x))
        return Memory(h, mask, masks.mean(h, mask))
""",
    "decoder": """
import torch
from weft.nn.decoders.decoder import Decoder
from weft.nn.ops import Linear

class Bigram(Decoder):
    def __init__(self, in_size, encoder, *, size: int = 11):
        super().__init__()
        self.size, self.reach = size, 1
        self.product = Linear(in_size + encoder.size, size)

    def start(self, memory, rows):
        return (memory.summary,)

    def forward(self, x, state, mask=None):
        given = state[0][:, None].expand(-1, x.shape[1], -1)
        return torch.tanh(self.product(torch.cat([x, given], -1))), state
""",
    "pool": """
import torch
from weft import masks
from weft.nn.pools import Pool

class Both(Pool):
    def __init__(self, memory_size):
        super().__init__(2 * memory_size)

    def forward(self, memory):
        return torch.cat([masks.mean(memory.states, memory.mask), memory.summary], -1)
""",
    "head": """
from weft.nn.heads.head import Loss, RealHead
from weft.nn.ops import Linear

class Quartic(RealHead):
    has_quantiles = False

    def __init__(self, in_size):
        super().__init__()
        self.weight = Linear(in_size, 1)

    def forward(self, h):
        return self.weight(h)[..., 0]

    def loss(self, h, target, mask):
        return Loss((self(h[mask]) - target[mask]).pow(4).sum(), mask.sum())

    def best(self, h, mask):
        return self(h)

    def quantiles(self, h, levels):
        raise ValueError("no quantiles")
""",
    "embedding": """
import torch
from torch import nn

class Halves(nn.Module):
    def __init__(self, num_tokens, size):
        super().__init__()
        self.tables = nn.ModuleList(nn.Embedding(num_tokens, size // 2) for _ in range(2))

    def forward(self, tokens):
        return torch.cat([table(tokens) for table in self.tables], -1)
""",
    "optimiser": """
from dataclasses import dataclass
import torch
from weft.train.optimisers import Optimiser, trainable

@dataclass(frozen=True, kw_only=True)
class Rms(Optimiser):
    lr: float = 0.01

    def build(self, model):
        return torch.optim.RMSprop(trainable(model), lr=self.lr)
""",
    "schedule": """
from dataclasses import dataclass
from weft.train.schedules import Schedule

@dataclass(frozen=True, kw_only=True)
class Halving(Schedule):
    every: int = 1

    def factor(self, update, done, state):
        return 0.5 ** (update // self.every)
""",
    "view": """
from weft.inspect.views.view import View, blank, said

class Letters(View):
    title, order = "Letters", 90

    def __init__(self, count):
        self.count = count

    @classmethod
    def collect(cls, opened, subject):
        return cls(len(subject.text))

    def blocks(self):
        return [said(f"The input has {self.count} letters.")]

    def table(self):
        return [("letters",), (self.count,)]

    def figure(self):
        return blank(2, 1)
""",
}
CLASSES = {kind: re.findall(r"^class (\w+)\(", text, re.MULTILINE)[-1] for kind, text in FILES.items()}
ELSEWHERE = {"task": "commands/test_task_plugin.py", "figure": "commands/test_task_plugin.py"}


def part(kind: str) -> str:
    """The name by which a recipe or an option asks for the part."""
    return f"{PACKAGE}.{kind}.{CLASSES[kind]}"


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working directory, with a package that has a file for each kind."""
    files = {f"{kind}.py": text for kind, text in FILES.items()}
    return package(tmp_path / "home", PACKAGE, files, monkeypatch)


def test_parts_of_a_recurrent_translator(home: Path) -> None:
    """A cell, a score, an optimiser, a schedule, a metric; then a view of the run."""
    named = (
        f"model.encoder.cell={{use: zoneout, cell: {{use: {part('cell')}, a: 0.5}}}}",
        f"model.decoder.cell={{use: {part('cell')}, a: 0.5}}",
        f"model.decoder.score={{use: {part('score')}, factor: 1.5}}",
        f"training.optimiser={{use: {part('optimiser')}, lr: 0.02}}",
        f"training.schedule={{use: {part('schedule')}, every: 3}}",
        f"training.metrics=[{{use: {part('metric')}, tolerance: 1}}]",
        f"training.metric={CLASSES['metric'].lower()}",
    )
    answer = weft("train", make(home / "toy"), "--run", "run", *SHORT, *named, *PLUGIN, code=0)
    assert f"evaluate run --plugin {PACKAGE}" in answer.out
    index = json.loads(Path("run/checkpoints.json").read_text("utf-8"))
    assert (index["metric"], index["better"]) == (CLASSES["metric"].lower(), "higher")
    recipe = Path("run/recipe.yaml").read_text("utf-8")
    for kind in ("cell", "score", "optimiser", "schedule", "metric"):
        assert part(kind) in recipe
    assert len(weft("predict", "run", *PLUGIN, stdin=b"alpha beta\n").lines) == 1
    found = weft("evaluate", "run", "--metric", f"{part('metric')}:tolerance=9", *PLUGIN)
    assert "same length" in found.out and "tolerance:9" in found.out, found.err
    views = ("--view", part("view"), "--views", "shown", "--format", "json")
    weft("inspect", "run", "alpha beta", *views, *PLUGIN, code=0)
    assert json.loads(Path("shown/letters.json").read_text("utf-8"))["view"] == "Letters"
    assert "The input has 10 letters." in Path("run/inspect.html").read_text("utf-8")


def test_an_encoder_and_a_decoder(home: Path) -> None:
    named = [f"model.{kind}={{use: {part(kind)}, size: 13}}" for kind in ("encoder", "decoder")]
    weft("train", make(home / "toy"), "--run", "run", *SHORT, *named, *PLUGIN, code=0)
    assert len(weft("predict", "run", *PLUGIN, stdin=b"alpha beta\ngamma\n").lines) == 2


def test_a_pool(home: Path) -> None:
    recipe = labelled.make_texts(home / "toy")
    weft("train", recipe, "--run", "run", *SHORT, f"model.pool={part('pool')}", *PLUGIN, code=0)
    assert weft("evaluate", "run", *PLUGIN).code == 0


def test_a_head(home: Path) -> None:
    small = "data.horizon=6", "data.lookback=12", "model.forecaster=linear", "training.monitors=false"
    head = f"model.head={part('head')}"
    weft("train", "waves-segments", head, "--run", "run", *SHORT, *small, *PLUGIN, code=0)
    assert "MSE" in weft("evaluate", "run", *PLUGIN).out


def test_an_embedding(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A recipe has no name for one: the section `model` of a task chooses it, or a model built in Python."""
    from importlib import import_module

    monkeypatch.syspath_prepend(home)
    torch.manual_seed(1)
    embed = getattr(import_module(f"{PACKAGE}.embedding"), CLASSES["embedding"])(19, 6)
    encoder = RecurrentEncoder(6, sizes=[5])
    model = Labeller(embed, encoder, Categorical(encoder.size, 3))
    tokens, mask = torch.tensor([[5, 6, 7], [8, 0, 0]]), torch.tensor([[1, 1, 1], [1, 0, 0]]).bool()
    batch = LabelBatch(tokens, mask, torch.tensor([[0, 1, 2], [1, 0, 0]]), 4)
    optimiser = torch.optim.Adam(model.parameters(), lr=0.05)
    losses = []
    for _ in range(40):
        optimiser.zero_grad()
        loss = model.loss(batch).mean
        loss.backward()
        optimiser.step()
        losses.append(float(loss.detach()))
    assert losses[-1] < 0.1 < losses[0]
    assert all(table.weight.grad.abs().sum() > 0 for table in embed.tables)


def test_a_view_that_was_not_allowed(home: Path) -> None:
    assert weft("train", make(home / "toy"), "--run", "run", *SHORT).code == 0
    assert f"--plugin {PACKAGE}" in refused(weft("inspect", "run", "alpha", "--view", part("view")))
    said = refused(weft("inspect", "run", "alpha", "--view", part("cell"), *PLUGIN))
    assert "--view" in said and "weft.inspect.views.view.View" in said


def score(toy: Path) -> tuple[str, ...]:
    """Changes of a recipe that take the score of the package."""
    toy.write_text(toy.read_text().replace("score: additive", "score: dot"))
    return f"model.decoder.score.use={part('score')}", "model.decoder.score.factor=1.5", *SHORT


def test_a_run_that_names_a_part_does_not_load_it_unasked(home: Path) -> None:
    toy = make(home / "toy")
    weft("train", toy, "--run", "run", *score(toy), *PLUGIN, code=0)
    for name in [name for name in sys.modules if name.startswith(PACKAGE)]:
        del sys.modules[name]
    said = refused(weft("predict", "run", stdin=b"alpha\n"))
    assert "run/recipe.yaml:" in said and f"if you trust it, allow it with --plugin {PACKAGE}" in said
    assert not any(name.startswith(PACKAGE) for name in sys.modules)


@pytest.mark.slow
def test_the_installed_command_finds_it_too(home: Path) -> None:
    # A console script does not have the working directory on its path, as python -m has.
    code = "import sys; sys.path.remove(''); from weft.cli import main; main()"
    where = {"PYTHONPATH": str(ROOT), "WEFT_CACHE": os.environ["WEFT_CACHE"]}
    toy = make(home / "toy")
    words = [sys.executable, "-c", code, "train", str(toy), "--run", "run", *score(toy), *PLUGIN]
    done = subprocess.run(words, env=where, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert (home / "run" / "model.safetensors").exists()


def table() -> dict[str, str]:
    """What CONTRIBUTING.md says of each kind: the files that it touches."""
    text = (
        (ROOT / "CONTRIBUTING.md").read_text("utf-8").partition("| you add | files |")[2].partition("\n\n")[0]
    )
    rows = [line.strip("| ").split(" | ") for line in text.splitlines()[2:]]
    return {kind: files for names, files, *_ in rows for kind in re.split(r", | or ", names)}


def test_the_page_names_every_kind_that_is_added_here() -> None:
    assert set(FILES) | set(ELSEWHERE) <= set(table())
    assert all((ROOT / "tests" / file).is_file() for file in ELSEWHERE.values())


@pytest.mark.parametrize(("kind", "files"), table().items(), ids=list(table()))
def test_the_places_on_the_page_are_there(kind: str, files: str) -> None:
    named = re.findall(r"`((?:weft|tests|recipes)/[^`]*)`", files)
    assert named, kind
    for path in named:
        folder = re.split("NAME|TASK", path)[0]
        assert (ROOT / folder).is_dir() if folder != path else (ROOT / path).exists(), path
