"""Engines as long-lived processes: where their virtual environments are, and how one is asked.

Peers' dependencies contradict each other, so each peer has an environment of its own outside the
repository, with the torch version of this one. Read next: worker.py, the other end of the pipe.
"""

import importlib.metadata
import json
import os
import subprocess
import sys
import venv
from pathlib import Path
from typing import Any, NamedTuple

HERE = Path(__file__).resolve().parent
READY = "weft-bench-ready"
NO_DEPS = "--no-deps"

ENVIRONMENTS: dict[str, list[list[str]]] = {  # what pip is given, one list a call
    "transformers": [["transformers==5.23.0", "x-transformers==2.31.0", "ctranslate2==4.8.5"]],
    # OpenNMT-py, JoeyNMT and Sockeye pin an old torch: without their dependencies, then what they import
    "opennmt": [
        ["configargparse", "pyyaml", "six", "pyonmttok", "sacrebleu", "ctranslate2==4.8.5", "rapidfuzz"],
        ["pyahocorasick", "fasttext-wheel"],
        [NO_DEPS, "OpenNMT-py==3.5.1"],
    ],
    "joeynmt": [
        ["pyyaml", "sacrebleu", "sacremoses", "sentencepiece==0.2.0", "importlib_metadata", "subword-nmt"],
        ["tensorboard", "matplotlib", "seaborn", "packaging", "datasets", "pandas"],
        [NO_DEPS, "joeynmt==2.3.0"],
    ],
    "sockeye": [["pyyaml", "sacrebleu", "numpy<2.3"], [NO_DEPS, "sockeye==3.1.34"]],
}
ENVIRONMENT_OF = {
    "transformers": "transformers",
    "xtransformers": "transformers",
    "ctranslate2": "transformers",
    "exported": "transformers",
    "opennmt": "opennmt",
    "joeynmt": "joeynmt",
    "sockeye": "sockeye",
}
OURS = (
    "weft",
    "onnxruntime",
)  # in the environment that runs this; onnxruntime comes with Weft's extra `export`


class NotHere(Exception):
    """An engine that cannot take part, and why."""


class Row(NamedTuple):
    """A row of the tables: an engine in a dtype."""

    engine: str
    dtype: str

    @property
    def label(self) -> str:
        return self.engine if self.dtype == "float32" else f"{self.engine} {self.dtype}"


def install(names: list[str], venvs: Path) -> None:
    """Make the environments of these peers; what is ready already is left as it is."""
    torch_version = importlib.metadata.version("torch").split("+")[0]
    for name in dict.fromkeys(ENVIRONMENT_OF[name] for name in names):
        folder = venvs / name
        if (folder / READY).exists():
            print(f"{name}: ready in {folder}")
            continue
        print(f"{name}: installing into {folder}", flush=True)
        venv.create(folder, with_pip=True, clear=True)
        for packages in [[f"torch=={torch_version}", "numpy"], *ENVIRONMENTS[name]]:
            command = [folder / "bin" / "python", "-m", "pip", "install", "--quiet", *packages]
            subprocess.run(command, check=True)
        (folder / READY).touch()


class Process:
    """One engine in its own process.

    Args:
        row: which engine, in which dtype.
        venvs: folder of the environments; the process's own messages go to logs/ there.
        threads: for every product of every engine.
    """

    def __init__(self, row: Row, venvs: Path, threads: int) -> None:
        self.row = row
        self.log = venvs / "logs" / f"{row.engine}-{row.dtype}.log"
        self.log.parent.mkdir(parents=True, exist_ok=True)
        quiet = {"TOKENIZERS_PARALLELISM": "false", "HF_HUB_OFFLINE": "1", "PYTHONWARNINGS": "ignore"}
        # a spinning OpenMP thread is CPU time that no engine has asked for
        omp = {"OMP_NUM_THREADS": str(threads), "MKL_NUM_THREADS": str(threads), "OMP_WAIT_POLICY": "passive"}
        environment = os.environ | quiet | omp
        if row.engine in OURS:
            environment["PYTHONPATH"] = str(HERE.parent)
        with open(self.log, "w") as log:
            self.process = subprocess.Popen(
                [_python(row.engine, venvs), HERE / "worker.py"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                env=environment,
                text=True,
            )

    def ask(self, do: str, **arguments: Any) -> dict[str, Any]:
        """One request and its answer.

        Raises:
            NotHere: the engine refused or died.
        """
        assert self.process.stdin and self.process.stdout
        try:
            self.process.stdin.write(json.dumps({"do": do, **arguments}) + "\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            pass
        line = self.process.stdout.readline()
        if not line:
            raise NotHere(f"{self.row.label} died; its last words are in {self.log}")
        answer = json.loads(line)
        if "error" in answer:
            raise NotHere(f"{self.row.label}, asked to {do}: {answer['error']} ({self.log})")
        return answer

    def end(self) -> None:
        """Close the pipe and wait; the worker stops at the end of its input."""
        if self.process.stdin and not self.process.stdin.closed:
            self.process.stdin.close()
        try:
            self.process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


def _python(engine: str, venvs: Path) -> Path:
    if engine in OURS:
        return Path(sys.executable)
    folder = venvs / ENVIRONMENT_OF[engine]
    if not (folder / READY).exists():
        raise NotHere(f"{engine} is not installed: python benchmarks/translate.py --install {engine}")
    return folder / "bin" / "python"
