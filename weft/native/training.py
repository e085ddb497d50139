"""The arguments of compiled functions that only training uses; see jobs.py."""

from ctypes import Structure, c_double, c_longlong, c_void_p

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
