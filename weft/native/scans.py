"""The arguments of compiled recurrences without weights. Read next: jobs.py, the other arguments."""

from ctypes import Structure, c_longlong, c_void_p


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
