"""The arguments of compiled functions: for each function a struct of sizes and addresses.

Each struct has the fields of the C++ struct in the same order. Changing either needs a new VERSION in both.
Read next: __init__.py, which loads them.
"""

from ctypes import Structure, c_double, c_longlong, c_void_p
from functools import partial


def _fields(kind: type, names: str) -> list[tuple[str, type]]:
    return [(name, kind) for name in names.split()]


numbers = partial(_fields, c_longlong)
reals = partial(_fields, c_double)
addresses = partial(_fields, c_void_p)


class Light(Structure):
    """As struct Light in light.cpp."""

    _fields_ = [
        *numbers("kind T B H slabs z_row z_step past_row past_step c_row c_step"),
        *addresses("bounds z past peep mask first c y"),
    ]


class LightBack(Structure):
    """As struct LightBack in light.cpp."""

    _fields_ = [
        ("f", Light),
        *numbers("slabs dz_row dz_step dpast_row dpast_step"),
        *addresses("dy dc dz dpast dpeep"),
    ]


class Selective(Structure):
    """As struct Selective in selective.cpp."""

    _fields_ = [
        *numbers("T B E N slabs"),
        *numbers("u_row u_step dt_row dt_step b_row b_step c_row c_step"),
        *addresses("bounds u dt a b c h kept y"),
    ]


class SelectiveBack(Structure):
    """As struct SelectiveBack in selective.cpp."""

    _fields_ = [("f", Selective), *numbers("slabs"), *addresses("dy dh du ddt db dc da")]


class Matrix(Structure):
    """As struct Matrix in matrix.cpp."""

    _fields_ = [
        *numbers("T B H K V decays slabs room_size"),
        *addresses("bounds strides q k v a e w s kept found o room"),
    ]


class MatrixBack(Structure):
    """As struct MatrixBack in matrix.cpp."""

    _fields_ = [("f", Matrix), *numbers("slabs"), *addresses("do ds dq dk dv da de dw")]


AXES = ("row", "head", "step")


class Attend(Structure):
    """As struct Attend in attention.cpp."""

    _fields_ = [
        *numbers("rows heads queries places size slabs causal"),
        *((f"{name}_{part}", c_longlong) for name in ["q", "k", "v", "dy"] for part in AXES),
        *numbers("mask_row"),
        *addresses("q k v mask weights y dy dq dk dv"),
    ]


class Drop(Structure):
    """As struct Drop in dropping.cpp."""

    _fields_ = [*numbers("count slabs key level"), *reals("scale"), *addresses("x onto y")]


class Losses(Structure):
    """As struct Losses in losses.cpp."""

    _fields_ = [
        *numbers("rows classes slabs half"),
        *reals("smoothing"),
        *addresses("logits bias target gradient dbias room sums"),
    ]


class NeighboursJob(Structure):
    """As struct Neighbours in neighbours.cpp."""

    _fields_ = [
        *numbers("rows length drawn size cbow slabs"),
        *reals("share"),
        *addresses("index words lines reach noise index_to words_to noise_to u v du dv room sums"),
    ]


class AdagradJob(Structure):
    """As struct Adagrad in neighbours.cpp."""

    _fields_ = [*numbers("rows size slabs"), *reals("rate epsilon"), *addresses("index gradient weight sum")]


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
        *numbers("cell T B H I slabs training x_row x_step"),
        *addresses("bounds active x panel_x panel_h bias bias_n peephole gates inner h c"),
        *numbers("halves"),
        *addresses("room"),
    ]


class Backward(Structure):
    """As struct Backward in cells.cpp."""

    _fields_ = [
        *numbers("cell T B H slabs"),
        *addresses("bounds active panel gates inner h c peephole dy dh_last dc dh carry d dpeephole"),
        *numbers("halves"),
        *addresses("room"),
    ]


class DecoderLayer(Structure):
    """As struct Layer in decoding.cpp: panel and bias of each product, gain and shift of each norm."""

    _fields_ = [
        *((f"{name}_{part}", c_void_p) for name in NORMS for part in ("gain", "shift")),
        *((f"{name}_{part}", c_void_p) for name in PRODUCTS for part in ("panel", "bias")),
        *addresses("cache keys values"),
        *numbers("cache_source cache_side cache_head"),
        *numbers("keys_source keys_head keys_place values_source values_head values_place"),
        *addresses("carry"),
    ]


class Decode(Structure):
    """As struct Decode in decoding.cpp."""

    _fields_ = [
        *numbers("layers rows sources size heads inner entries positions places slabs before root"),
        *numbers("activation"),
        *reals("epsilon"),
        *addresses("each gain shift path mask x room"),
        *numbers("halves"),
        *addresses("cut"),
        *numbers("kind whole path_row"),
        *addresses("numbers parents"),
        *numbers("side beam all"),
    ]


class PredictJob(Structure):
    """As struct Predict in decoding.cpp."""

    _fields_ = [
        *numbers("rows size classes slabs"),
        *addresses("panel bias x logp"),
        *numbers("halves"),
        *addresses("cut"),
        *numbers("kind"),
    ]


class WriterJob(Structure):
    """As struct Writer in writing.h."""

    _fields_ = [
        ("layers", Decode),
        ("head", PredictJob),
        *addresses("project_panel project_bias entry_gain entry_shift"),
        *reals("scale"),
        *addresses("table positions"),
        *numbers("first path_row"),
        *addresses("paths"),
        *numbers("room"),
        *addresses("rooms"),
    ]


class SearchedCell(Structure):
    """As struct Cell in recurrent.h."""

    _fields_ = [
        *numbers("kind inputs size"),
        *addresses("x_panel x_bias h_panel h_bias"),
        *addresses("first second"),
    ]


class Recurrent(Structure):
    """As struct Recurrent in recurrent.h."""

    _fields_ = [
        ("head", PredictJob),
        *addresses("project_panel project_bias"),
        *numbers("layers all beam kind vector residual"),
        *addresses("each"),
        *reals("scale"),
        *addresses("table"),
        *numbers("early late score inner context places"),
        *addresses("query_panel query_bias weight"),
        *reals("factor"),
        *addresses("keys values"),
        *numbers("keys_source keys_place values_source values_place"),
        *addresses("mask readout_panel readout_bias"),
        *numbers("bent shown size"),
        *addresses("fed"),
        *numbers("room"),
        *addresses("rooms"),
        *numbers("halves"),
        *addresses("cut"),
    ]


class Searching(Structure):
    """As struct Searching in searching.cpp."""

    _fields_ = [
        *numbers("sources width kept nbest classes longest slabs kind eos least prefixed free enough stop"),
        *numbers("grams time steps"),
        *addresses("model take start limit banned banned_early prefix norm logp parent token score sum"),
        *addresses("written slot ended state room"),
        *numbers("searched"),
        *addresses("rows"),
        *numbers("apart"),
        *addresses("past"),
        *numbers("past_row"),
        *reals("temperature share"),
        *numbers("likeliest"),
        *addresses("uniform chances"),
    ]


class ReadingJob(Structure):
    """As struct Reading in searching.cpp."""

    _fields_ = [
        *numbers("sources width kept longest eos slabs"),
        *addresses("parent token written slot tokens"),
    ]


class Energies(Structure):
    """As struct Energies in energies.cpp."""

    _fields_ = [
        *numbers("sources queries places size keys_source keys_place slabs"),
        *addresses("query keys weight energy dquery dkeys dweight"),
    ]


class Look(Structure):
    """As struct Look in energies.cpp."""

    _fields_ = [
        *numbers("sources queries places size width keys_source keys_place values_source values_place slabs"),
        *addresses("query keys powers weight values mask weights context dquery dkeys dweight room"),
    ]


class Product(Structure):
    """As struct Product in tiles.cpp."""

    _fields_ = [
        *numbers("rows inputs outputs slabs x_row x_step w_row w_step y_row"),
        *addresses("x w bias packed room y"),
    ]


class Choose(Structure):
    """As struct Choose in choosing.cpp."""

    _fields_ = [
        *numbers("sources beam classes apart count slabs"),
        *addresses("logp base banned value parent token"),
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
    "decoding": {"weft_decode": Decode, "weft_multiply": PredictJob, "weft_predict": PredictJob},
    "choosing": {"weft_choose": Choose},
    "searching": {"weft_search": Searching, "weft_read_back": ReadingJob},
    "tiles": {"weft_tiles_pack": Product, "weft_tiles_product": Product},
}
"""For each source, its multi-threaded functions and the struct that each takes."""

NARROW_CALLS: dict[str, dict[str, type[Structure]]] = {
    "cells": {"weft_forward_words": Forward, "weft_backward_words": Backward}
}
"""The same for functions that only libraries with bfloat16 have."""
