"""A rule that splits sentences, as the ONNX model that Argos Translate's splitter (MiniSBD) runs.

Without a model in the package MiniSBD downloads one. This one ends a sentence after . ! ? … when white space
follows, and after the marks of Chinese and Japanese. Read next: formats/argos.py.
"""

import importlib
import json
from typing import Any

import numpy as np

MARKS = ".!?\u2026"
ALONE = "\u3002\uff01\uff1f"
SPACES = " \n\t"
KNOWN = ("<PAD>", "<UNK>", *MARKS, *ALONE, *SPACES)
END = 2  # MiniSBD's class of a character that ends a sentence


def sentence_splitter() -> bytes:
    """The model: units [B, T] to scores [B, T, 3]; the next unit decides with each mark."""
    onnx: Any = importlib.import_module("onnx")
    make, tensor = onnx.helper, onnx.numpy_helper.from_array
    numbers = {name: number for number, name in enumerate(KNOWN)}
    nodes = [
        make.make_node("Gather", ["ending", "units"], ["is_ending"]),
        make.make_node("Gather", ["alone", "units"], ["is_alone"]),
        make.make_node("Gather", ["space", "units"], ["is_space"]),
        make.make_node("Slice", ["is_space", "one", "most", "axis"], ["following"]),
        make.make_node("Pad", ["following", "right", "filler"], ["next_space"]),
        make.make_node("Mul", ["is_ending", "next_space"], ["both"]),
        make.make_node("Max", ["both", "is_alone"], ["end"]),
        make.make_node("ReduceSum", ["features"], ["all_features"], keepdims=0),
        make.make_node("Mul", ["all_features", "nothing"], ["unused"]),
        make.make_node("Mul", ["end", "nothing"], ["zeros"]),
        make.make_node("Add", ["zeros", "unused"], ["token"]),
        make.make_node("Add", ["zeros", "half"], ["other"]),
        *(
            make.make_node("Unsqueeze", [name, "last"], [f"{name}_column"])
            for name in ("other", "token", "end")
        ),
        make.make_node("Concat", ["other_column", "token_column", "end_column"], ["scores"], axis=2),
    ]
    kinds = onnx.TensorProto
    graph = make.make_graph(
        nodes,
        "sentences",
        [
            make.make_tensor_value_info("units", kinds.INT64, ["B", "T"]),
            make.make_tensor_value_info("features", kinds.FLOAT, ["B", "T", "F"]),
        ],
        [make.make_tensor_value_info("scores", kinds.FLOAT, ["B", "T", 3])],
        [tensor(value, name) for name, value in _constants(numbers).items()],
    )
    model = make.make_model(graph, opset_imports=[make.make_opsetid("", 18)], ir_version=9)
    vocabulary = {"_unit2id": numbers, "_id2unit": list(KNOWN), "lang": "any", "lower": False}
    about = {
        "lang_code": "any",
        "config": json.dumps({"feat_funcs": ["space_before"], "max_seqlen": 1000}),
        "vocab": json.dumps(vocabulary),
        "lexicon": "null",
    }
    make.set_model_props(model, about)
    return bytes(model.SerializeToString())


def _constants(numbers: dict[str, int]) -> dict[str, np.ndarray]:
    """Which units are marks and which are spaces, and numbers that the graph needs."""
    ending, space, alone = (np.zeros(len(KNOWN), np.float32) for _ in range(3))
    ending[[numbers[mark] for mark in MARKS]] = 1
    alone[[numbers[mark] for mark in ALONE]] = 1
    space[[0, *(numbers[mark] for mark in SPACES)]] = 1
    return {
        "ending": ending,
        "alone": alone,
        "space": space,
        "one": np.array([1]),
        "most": np.array([2**31]),
        "axis": np.array([1]),
        "last": np.array([2]),
        "right": np.array([0, 0, 0, 1]),
        "filler": np.array(1, np.float32),
        "nothing": np.array(0, np.float32),
        "half": np.array(0.5, np.float32),
    }
