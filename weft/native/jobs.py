"""The arguments of compiled functions: for each function a struct of sizes and addresses.

Each struct has the fields of the C++ struct in the same order. Changing either needs a new VERSION in both.
Read next: library.py.
"""

from ctypes import Structure, c_double, c_longlong, c_void_p


class Light(Structure):
    """As struct Light in light.cpp."""

    _fields_ = [
        *((name, c_longlong) for name in ["kind", "T", "B", "H", "slabs", "z_row", "z_step"]),
        *((name, c_longlong) for name in ["past_row", "past_step", "c_row", "c_step"]),
        *((name, c_void_p) for name in ["bounds", "z", "past", "peep", "mask", "first", "c", "y"]),
    ]


class LightBack(Structure):
    """As struct LightBack in light.cpp."""

    _fields_ = [
        ("f", Light),
        *((name, c_longlong) for name in ["slabs", "dz_row", "dz_step", "dpast_row", "dpast_step"]),
        *((name, c_void_p) for name in ["dy", "dc", "dz", "dpast", "dpeep"]),
    ]


class Selective(Structure):
    """As struct Selective in selective.cpp."""

    _fields_ = [
        *((name, c_longlong) for name in ["T", "B", "E", "N", "slabs"]),
        *((f"{name}_{part}", c_longlong) for name in ["u", "dt", "b", "c"] for part in ["row", "step"]),
        *((name, c_void_p) for name in ["bounds", "u", "dt", "a", "b", "c", "h", "kept", "y"]),
    ]


class SelectiveBack(Structure):
    """As struct SelectiveBack in selective.cpp."""

    _fields_ = [
        ("f", Selective),
        ("slabs", c_longlong),
        *((name, c_void_p) for name in ["dy", "dh", "du", "ddt", "db", "dc", "da"]),
    ]


class Matrix(Structure):
    """As struct Matrix in matrix.cpp."""

    _fields_ = [
        *((name, c_longlong) for name in ["T", "B", "H", "K", "V", "decays", "slabs", "room_size"]),
        *((name, c_void_p) for name in ["bounds", "strides", "q", "k", "v", "a", "e", "w"]),
        *((name, c_void_p) for name in ["s", "kept", "found", "o", "room"]),
    ]


class MatrixBack(Structure):
    """As struct MatrixBack in matrix.cpp."""

    _fields_ = [
        ("f", Matrix),
        ("slabs", c_longlong),
        *((name, c_void_p) for name in ["do", "ds", "dq", "dk", "dv", "da", "de", "dw"]),
    ]


AXES = ("row", "head", "step")


class Attend(Structure):
    """As struct Attend in attention.cpp."""

    _fields_ = [
        *((name, c_longlong) for name in ["rows", "heads", "queries", "places", "size", "slabs", "causal"]),
        *((f"{name}_{part}", c_longlong) for name in ["q", "k", "v", "dy"] for part in AXES),
        ("mask_row", c_longlong),
        *((name, c_void_p) for name in ["q", "k", "v", "mask", "weights", "y", "dy", "dq", "dk", "dv"]),
    ]


class Drop(Structure):
    """As struct Drop in dropping.cpp."""

    _fields_ = [
        *((name, c_longlong) for name in ["count", "slabs", "key", "level"]),
        ("scale", c_double),
        *((name, c_void_p) for name in ["x", "onto", "y"]),
    ]


class Losses(Structure):
    """As struct Losses in losses.cpp."""

    _fields_ = [
        *((name, c_longlong) for name in ["rows", "classes", "slabs", "half"]),
        ("smoothing", c_double),
        *((name, c_void_p) for name in ["logits", "bias", "target", "gradient", "dbias", "room", "sums"]),
    ]


class NeighboursJob(Structure):
    """As struct Neighbours in neighbours.cpp."""

    _fields_ = [
        *((name, c_longlong) for name in ["rows", "length", "drawn", "size", "cbow", "slabs"]),
        ("share", c_double),
        *((name, c_void_p) for name in ["index", "words", "lines", "reach", "noise"]),
        *((name, c_void_p) for name in ["index_to", "words_to", "noise_to", "u", "v", "du", "dv"]),
        *((name, c_void_p) for name in ["room", "sums"]),
    ]


class AdagradJob(Structure):
    """As struct Adagrad in neighbours.cpp."""

    _fields_ = [
        *((name, c_longlong) for name in ["rows", "size", "slabs"]),
        *((name, c_double) for name in ["rate", "epsilon"]),
        *((name, c_void_p) for name in ["index", "gradient", "weight", "sum"]),
    ]


VERSION = 4  # of these structs
VERSIONS = {
    "decoding": 6,
    "searching": 6,
    "attention": 1,
    "dropping": 1,
    "energies": 5,
    "neighbours": 5,
}  # of single sources
CELLS = {"lstm": 0, "peephole": 1, "coupled": 2, "gru": 3, "elman": 4, "relu": 5}
GATES = {"lstm": 4, "peephole": 4, "coupled": 3, "gru": 3, "elman": 1, "relu": 1}
LIGHT = {"mingru": 0, "minlstm": 1, "ssru": 2, "sru": 3}
SEARCHED = {"lstm": 0, "gru": 1, "ssru": 2}  # cells of a whole search
ACTIVATIONS = {"relu": 0, "gelu": 1, "gelu_tanh": 2, "silu": 3, "swiglu": 4}
KINDS = {"float32": 0, "bfloat16": 1, "int8": 2}  # of the weights of a search
NORMS = ("attention_norm", "cross_norm", "network_norm")
PRODUCTS = ("query", "key_value", "out", "cross_query", "cross_out", "first", "second")


class Forward(Structure):
    """As struct Forward in cells.cpp."""

    _fields_ = [
        *(
            (name, c_longlong)
            for name in ["cell", "T", "B", "H", "I", "slabs", "training", "x_row", "x_step"]
        ),
        *((name, c_void_p) for name in ["bounds", "active", "x", "panel_x", "panel_h", "bias", "bias_n"]),
        *((name, c_void_p) for name in ["peephole", "gates", "inner", "h", "c"]),
        ("halves", c_longlong),
        ("room", c_void_p),
    ]


class Backward(Structure):
    """As struct Backward in cells.cpp."""

    _fields_ = [
        *((name, c_longlong) for name in ["cell", "T", "B", "H", "slabs"]),
        *((name, c_void_p) for name in ["bounds", "active", "panel", "gates", "inner", "h", "c", "peephole"]),
        *((name, c_void_p) for name in ["dy", "dh_last", "dc", "dh", "carry", "d", "dpeephole"]),
        ("halves", c_longlong),
        ("room", c_void_p),
    ]


class DecoderLayer(Structure):
    """As struct Layer in decoding.cpp: panel and bias of each product, gain and shift of each norm."""

    _fields_ = [
        *((f"{name}_{part}", c_void_p) for name in NORMS for part in ("gain", "shift")),
        *((f"{name}_{part}", c_void_p) for name in PRODUCTS for part in ("panel", "bias")),
        *((name, c_void_p) for name in ["cache", "keys", "values"]),
        *((name, c_longlong) for name in ["cache_source", "cache_side", "cache_head"]),
        *(
            (f"{name}_{axis}", c_longlong)
            for name in ("keys", "values")
            for axis in ("source", "head", "place")
        ),
        ("carry", c_void_p),
    ]


class Decode(Structure):
    """As struct Decode in decoding.cpp."""

    _fields_ = [
        *((name, c_longlong) for name in ["layers", "rows", "sources", "size", "heads", "inner", "entries"]),
        *((name, c_longlong) for name in ["positions", "places", "slabs", "before", "root", "activation"]),
        ("epsilon", c_double),
        *((name, c_void_p) for name in ["each", "gain", "shift", "path", "mask", "x", "room"]),
        ("halves", c_longlong),
        ("cut", c_void_p),
        ("kind", c_longlong),
        ("whole", c_longlong),
        ("path_row", c_longlong),
        *((name, c_void_p) for name in ["numbers", "parents"]),
        *((name, c_longlong) for name in ["side", "beam", "all"]),
    ]


class PredictJob(Structure):
    """As struct Predict in decoding.cpp."""

    _fields_ = [
        *((name, c_longlong) for name in ["rows", "size", "classes", "slabs"]),
        *((name, c_void_p) for name in ["panel", "bias", "x", "logp"]),
        ("halves", c_longlong),
        ("cut", c_void_p),
        ("kind", c_longlong),
    ]


class WriterJob(Structure):
    """As struct Writer in writing.h."""

    _fields_ = [
        ("layers", Decode),
        ("head", PredictJob),
        *((name, c_void_p) for name in ["project_panel", "project_bias", "entry_gain", "entry_shift"]),
        ("scale", c_double),
        *((name, c_void_p) for name in ["table", "positions"]),
        *((name, c_longlong) for name in ["first", "path_row"]),
        ("paths", c_void_p),
        ("room", c_longlong),
        ("rooms", c_void_p),
    ]


class SearchedCell(Structure):
    """As struct Cell in recurrent.h."""

    _fields_ = [
        *((name, c_longlong) for name in ["kind", "inputs", "size"]),
        *((f"{name}_{part}", c_void_p) for name in ("x", "h") for part in ("panel", "bias")),
        *((name, c_void_p) for name in ["first", "second"]),
    ]


class Recurrent(Structure):
    """As struct Recurrent in recurrent.h."""

    _fields_ = [
        ("head", PredictJob),
        *((name, c_void_p) for name in ["project_panel", "project_bias"]),
        *((name, c_longlong) for name in ["layers", "all", "beam", "kind", "vector", "residual"]),
        ("each", c_void_p),
        ("scale", c_double),
        ("table", c_void_p),
        *((name, c_longlong) for name in ["early", "late", "score", "inner", "context", "places"]),
        *((name, c_void_p) for name in ["query_panel", "query_bias", "weight"]),
        ("factor", c_double),
        *((name, c_void_p) for name in ["keys", "values"]),
        *((name, c_longlong) for name in ["keys_source", "keys_place", "values_source", "values_place"]),
        *((name, c_void_p) for name in ["mask", "readout_panel", "readout_bias"]),
        *((name, c_longlong) for name in ["bent", "shown", "size"]),
        ("fed", c_void_p),
        ("room", c_longlong),
        ("rooms", c_void_p),
        ("halves", c_longlong),
        ("cut", c_void_p),
    ]


class Searching(Structure):
    """As struct Searching in searching.cpp."""

    _fields_ = [
        *(
            (name, c_longlong)
            for name in ["sources", "width", "kept", "nbest", "classes", "longest", "slabs"]
        ),
        *((name, c_longlong) for name in ["kind", "eos", "least", "prefixed", "free", "enough", "stop"]),
        *((name, c_longlong) for name in ["grams", "time", "steps"]),
        *((name, c_void_p) for name in ["model", "take", "start", "limit", "banned", "banned_early"]),
        *((name, c_void_p) for name in ["prefix", "norm", "logp", "parent", "token", "score", "sum"]),
        *((name, c_void_p) for name in ["written", "slot", "ended", "state", "room"]),
        ("searched", c_longlong),
        ("rows", c_void_p),
        ("apart", c_longlong),
        ("past", c_void_p),
        ("past_row", c_longlong),
        *((name, c_double) for name in ["temperature", "share"]),
        ("likeliest", c_longlong),
        *((name, c_void_p) for name in ["uniform", "chances"]),
    ]


class ReadingJob(Structure):
    """As struct Reading in searching.cpp."""

    _fields_ = [
        *((name, c_longlong) for name in ["sources", "width", "kept", "longest", "eos", "slabs"]),
        *((name, c_void_p) for name in ["parent", "token", "written", "slot", "tokens"]),
    ]


class Energies(Structure):
    """As struct Energies in energies.cpp."""

    _fields_ = [
        *((name, c_longlong) for name in ["sources", "queries", "places", "size"]),
        *((name, c_longlong) for name in ["keys_source", "keys_place", "slabs"]),
        *((name, c_void_p) for name in ["query", "keys", "weight", "energy", "dquery", "dkeys", "dweight"]),
    ]


class Look(Structure):
    """As struct Look in energies.cpp."""

    _fields_ = [
        *((name, c_longlong) for name in ["sources", "queries", "places", "size", "width"]),
        *((name, c_longlong) for name in ["keys_source", "keys_place", "values_source", "values_place"]),
        ("slabs", c_longlong),
        *((name, c_void_p) for name in ["query", "keys", "powers", "weight", "values", "mask", "weights"]),
        *((name, c_void_p) for name in ["context", "dquery", "dkeys", "dweight", "room"]),
    ]


class Product(Structure):
    """As struct Product in tiles.cpp."""

    _fields_ = [
        *((name, c_longlong) for name in ["rows", "inputs", "outputs", "slabs"]),
        *((name, c_longlong) for name in ["x_row", "x_step", "w_row", "w_step", "y_row"]),
        *((name, c_void_p) for name in ["x", "w", "bias", "packed", "room", "y"]),
    ]


class Choose(Structure):
    """As struct Choose in choosing.cpp."""

    _fields_ = [
        *((name, c_longlong) for name in ["sources", "beam", "classes", "apart", "count", "slabs"]),
        *((name, c_void_p) for name in ["logp", "base", "banned", "value", "parent", "token"]),
    ]


CALLS: dict[str, dict[str, type[Structure]]] = {
    "cells": {
        "weft_forward": Forward,
        "weft_backward": Backward,
        "weft_forward_plain": Forward,
        "weft_backward_plain": Backward,
    },
    "light": {"weft_light_forward": Light, "weft_light_backward": LightBack},
    "selective": {"weft_selective_forward": Selective, "weft_selective_backward": SelectiveBack},
    "matrix": {"weft_matrix_forward": Matrix, "weft_matrix_backward": MatrixBack},
    "energies": {
        "weft_energies": Energies,
        "weft_energies_back": Energies,
        "weft_look": Look,
        "weft_look_back": Look,
    },
    "attention": {"weft_attend": Attend, "weft_attend_back": Attend},
    "dropping": {"weft_drop": Drop},
    "losses": {"weft_losses": Losses},
    "neighbours": {"weft_neighbours": NeighboursJob, "weft_adagrad": AdagradJob},
    "decoding": {
        "weft_decode": Decode,
        "weft_multiply": PredictJob,
        "weft_predict": PredictJob,
    },
    "choosing": {"weft_choose": Choose},
    "searching": {"weft_search": Searching, "weft_read_back": ReadingJob},
    "tiles": {"weft_tiles_pack": Product, "weft_tiles_product": Product},
}
"""For each source, its multi-threaded functions and the struct that each takes."""

NARROW_CALLS: dict[str, dict[str, type[Structure]]] = {
    "cells": {"weft_forward_words": Forward, "weft_backward_words": Backward}
}
"""The same for functions that only libraries with bfloat16 have."""
