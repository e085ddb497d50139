"""How fast Weft translates and learns to, beside its peers: same model, vocabulary, data and rounds.

    python benchmarks/translate.py --install transformers opennmt ctranslate2
    python benchmarks/translate.py --data multi30k --train-seconds 300

prints target tokens a CPU second of training, and sentences a CPU second of greedy search and of beam 5,
in batches and one at a time, for every engine, and how many times as fast Weft is. A row is an engine in a
dtype; Weft's in int8 decodes the weights of that in float32, and "torch" is Weft without its compiled code.
Without compiled code the other rows of Weft are refused. The engines take turns, one round each
(A B C A B C ...), and a ratio is taken within a round, so that a busy neighbour touches all alike.
With --train-seconds every engine first trains for that many CPU seconds and ends its sentences itself;
BLEU then stands beside the speed. Without, weights are as good as random and every engine is made to
write outputs of the same length. With --model hybrid Weft's side is a Transformer that reads and SSRUs
that write, beside the peers' Transformer of the same width. Read next: workload.py, measure.py,
peers/engine.py.
"""

import argparse
import json
import time
from pathlib import Path

import report
import workload
from engines import ENVIRONMENT_OF, Row, install
from measure import Bench, Scorer, giver

MODELS = ("transformer", "rnn", "hybrid")
BESIDE = {
    "transformer": [
        "transformers",
        "xtransformers",
        "opennmt",
        "ctranslate2",
        "ctranslate2:int8",
        "onnxruntime",
    ],
    "rnn": ["opennmt", "onnxruntime"],
    "hybrid": ["transformers", "ctranslate2", "ctranslate2:int8"],
}


def main() -> None:
    """Install, or measure and print."""
    options = arguments()
    if options.install is not None:
        return install(options.install or list(ENVIRONMENT_OF), options.venvs)
    if options.data is None:
        raise SystemExit("--data: give a folder with train.en, train.de and the test files (plain or .gz)")
    npz, vocabulary, references = workload.make(
        options.data,
        (options.source, options.target),
        options.test,
        options.venvs,
        size=options.vocabulary,
        max_tokens=options.max_tokens,
        rows=options.rows,
    )
    scorer = Scorer(vocabulary, references, workload.Workload.load(npz).test_batches)
    for model in MODELS[:2] if options.model == "both" else [options.model]:
        bench = Bench(options, model, rows_of(options, model), npz)
        try:
            measured = bench.run(scorer)
        finally:
            bench.end()
        print("\n".join(report.lines(measured, options)))
        path = options.venvs / "results" / f"{model}-{time.strftime('%Y%m%d-%H%M%S')}.json"
        path = options.json.with_suffix(f".{model}.json") if options.json else path
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(report.figures(measured, options), indent=1) + "\n")
        print(f"\nevery round: {path}\n", flush=True)


def rows_of(options: argparse.Namespace, model: str) -> list[Row]:
    """The rows asked for; an engine that decodes another's weights brings that one along."""
    ours = ["weft" if dtype == "float32" else f"weft:{dtype}" for dtype in options.dtype]
    names = [name.partition(":") for name in ours + (options.peers or BESIDE[model])]
    rows = [Row(engine, dtype or "float32") for engine, _, dtype in names]
    givers = [Row(whose, "float32") for row in rows if (whose := giver(row))]
    return list(dict.fromkeys(rows + givers))


def arguments() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    cache = Path.home() / ".cache" / "weft-bench"
    peers = ", ".join([*ENVIRONMENT_OF, "onnxruntime"])
    add("--install", nargs="*", metavar="PEER", choices=ENVIRONMENT_OF, help=f"make environments: {peers}")
    add("--venvs", type=Path, default=cache, help="where environments, workloads and results are kept")
    add("--data", type=Path, help="folder with train.en, train.de, ... (plain or .gz), such as Multi30k")
    add("--source", default="en")
    add("--target", default="de")
    add("--test", default="test_2016_flickr", help="name of the test files, without the language")
    add("--model", choices=[*MODELS, "both"], default="both")
    add("--peers", nargs="+", metavar="PEER[:DTYPE]", help=f"of {peers}; ctranslate2:int8 too")
    dtypes = ["float32", "bfloat16", "int8", "torch"]
    add("--dtype", nargs="+", choices=dtypes, default=dtypes[:3], help="rows of Weft")
    add("--vocabulary", type=int, default=8000, help="pieces of the joint BPE")
    add("--max-tokens", type=int, default=2000, help="real target tokens of a training batch")
    add("--batches", type=int, default=10, help="training batches a round")
    add("--sentences", type=int, default=256, help="test sentences a round, in whole batches")
    add("--rows", type=int, default=32, help="sentences of a test batch")
    add("--alone", type=int, default=16, help="test sentences a round, one at a time")
    add("--rounds", type=int, default=5)
    add("--threads", type=int, default=1)
    add("--seed", type=int, default=1)
    add("--train-seconds", type=float, default=0.0, help="CPU seconds each engine trains before the search")
    add("--json", type=Path, help="where every round is written, one file a model")
    return parser.parse_args()


if __name__ == "__main__":
    main()
