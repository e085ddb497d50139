"""Words and what they look at: n-grams, word vectors, attention, heads, positions, search."""

import math

from kit import Diagram


def ngrams() -> Diagram:
    """A window of three words slides over a sentence."""
    d = Diagram(
        640,
        190,
        "A sentence of six tokens. A trigram model predicts each token from the two before it: the window of "
        "three slides along the sentence.",
    )
    words = ("<s>", "the", "cat", "sat", "on", "mats")
    for place, word in enumerate(words):
        d.box(70 + 100 * place, 70, word, w=76, kind="data")
    d.box(270, 70, w=296, h=58, kind="part")
    d.curve((170, 52), (362, 52), 22)
    d.curve((270, 52), (370, 52), 14)
    d.text(270, 120, "$P(sat | the, cat)$ = count(the cat sat) / count(the cat)")
    d.box(370, 160, w=296, h=4, kind="plain")
    d.text(370, 178, "next window", "note")
    return d


def skipgram() -> Diagram:
    """The vector of a word predicts the words around it."""
    d = Diagram(
        620,
        240,
        "Skip-gram: the vector of the middle word is compared with the vectors of the words around it, and "
        "is trained so that those score higher than words drawn at random.",
    )
    words = ("the", "cat", "sat", "on", "mats")
    for place, word in enumerate(words):
        x = 70 + 115 * place
        d.box(x, 200, word, w=80, kind="data")
        if place != 2:
            d.line((300, 92), (x, 184), bend=0)
    d.box(300, 76, "vector of sat", w=120)
    d.line((300, 184), (300, 150), (180, 150), (180, 76), (240, 76), kind="faint")
    d.text(430, 60, "score $= u_{context} · v_{sat}$", "left")
    return d


def attention() -> Diagram:
    """A query is compared with every key; the weights mix the values."""
    d = Diagram(
        660,
        330,
        "Attention: the state of the decoder is the query; it is scored against every encoder state; softmax "
        "turns scores into weights; the weighted sum of the states is the context vector.",
    )
    weights = (0.05, 0.1, 0.75, 0.1)
    for place, weight in enumerate(weights):
        x = 90 + 100 * place
        d.box(x, 270, f"$h_{place + 1}$", w=56, kind="data")
        d.line((x, 254), (x, 222))
        d.box(x, 206, "score", w=60)
        d.line((x, 190), (x, 164))
        d.op(x, 100, "×", r=11)
        d.line((x, 132), (x, 111))
        d.text(x + 26, 120, f"{weight:g}", "note")
        d.line((x, 89), (x, 60), (245, 60), (245, 50), bend=6) if place in (0, 3) else d.line(
            (x, 89), (x, 60), (245, 60), arrow=False, bend=6
        )
        d.line((x - 28, 270), (x - 42, 270), (x - 42, 100), (x - 11, 100), kind="faint", bend=6)
    d.box(245, 148, "softmax", w=360, h=30, kind="plain")
    d.op(245, 36, "+")
    d.line((258, 36), (560, 36), kind="state")
    d.text(590, 36, "$c_t$")
    d.text(420, 20, "context vector", "note")
    d.box(560, 206, "$s_{t-1}$", w=60)
    for place in range(4):
        x = 90 + 100 * place
        d.line((x + (140 if place == 3 else 70), 206), (x + 30, 206))
    d.text(560, 240, "query: decoder state", "note")
    d.text(240, 310, "keys and values: encoder states", "note")
    return d


def attention_places() -> Diagram:
    """Bahdanau asks with the old state, Luong with the new one."""
    d = Diagram(
        700,
        250,
        "Two places for attention. Bahdanau: the state before the step asks, and the context is an input of "
        "the cell. Luong: the state after the step asks, and the context joins it on the way to the output.",
    )
    d.text(160, 18, "Bahdanau: before the cell", "title")
    d.line((20, 150), (165, 150), kind="state")
    d.box(200, 150, "cell", w=70, h=44)
    d.line((235, 150), (330, 150), kind="state")
    d.box(105, 85, "attention", w=84)
    d.dot(60, 150)
    d.line((60, 150), (60, 85), (63, 85), bend=0)
    d.line((147, 85), (190, 85), (190, 128))
    d.text(168, 70, "$c_t$")
    d.line((200, 225), (200, 172))
    d.text(222, 215, "$y_{t-1}$")
    d.dot(280, 150)
    d.line((280, 150), (280, 60))
    d.text(300, 70, "output", "left")
    d.text(36, 172, "$s_{t-1}$")
    d.text(315, 172, "$s_t$")
    d.text(520, 18, "Luong: after the cell", "title")
    d.line((390, 150), (435, 150), kind="state")
    d.box(470, 150, "cell", w=70, h=44)
    d.line((505, 150), (690, 150), kind="state")
    d.line((470, 225), (470, 172))
    d.text(492, 215, "$y_{t-1}$")
    d.dot(560, 150)
    d.line((560, 150), (560, 101))
    d.box(560, 85, "attention", w=84)
    d.line((602, 85), (637, 85))
    d.op(650, 85, "+")
    d.text(620, 70, "$c_t$")
    d.dot(650, 150)
    d.line((650, 150), (650, 98))
    d.line((650, 72), (650, 36))
    d.text(640, 46, "output", "right")
    d.text(398, 172, "$s_{t-1}$")
    d.text(676, 172, "$s_t$")
    return d


def self_attention() -> Diagram:
    """Every position asks every position; a row of weights mixes the values."""
    d = Diagram(
        660,
        330,
        "Self-attention over four positions: each input gives a query, a key and a value. A square of "
        "weights has a row for each query and a column for each key. "
        "Each row mixes the values to one output.",
    )
    weights = (
        (0.7, 0.1, 0.1, 0.1),
        (0.1, 0.2, 0.6, 0.1),
        (0.1, 0.5, 0.2, 0.2),
        (0.05, 0.8, 0.1, 0.05),
    )
    d.grid(230, 104, weights, size=46)
    for place in range(4):
        x, y = 253 + 46 * place, 127 + 46 * place
        d.box(x, 24, f"$x_{place + 1}$", w=36, h=28, kind="data")
        d.line((x, 38), (x, 53))
        d.box(x, 67, f"$k_{place + 1}$", w=36, h=28)
        d.line((x, 81), (x, 102))
        d.box(48, y, f"$x_{place + 1}$", w=44, h=30, kind="data")
        d.line((70, y), (119, y))
        d.box(141, y, f"$q_{place + 1}$", w=44, h=30)
        d.line((163, y), (228, y))
        d.line((416, y), (517, y))
        d.op(530, y, "Σ")
        d.line((543, y), (600, y), kind="state")
        d.text(622, y, f"$y_{place + 1}$")
        value = 461 + 46 * place
        d.box(value, 24, f"$x_{place + 1}$", w=36, h=28, kind="data")
        d.line((value, 38), (value, 53))
        d.box(value, 67, f"$v_{place + 1}$", w=36, h=28)
    d.line((530, 84), (530, 114), kind="faint")
    d.text(322, 306, "weights: each row sums to 1", "note")
    d.text(95, 306, "the same inputs", "note")
    d.text(530, 306, "sums of values", "note")
    return d


def heads() -> Diagram:
    """Several small attentions side by side."""
    d = Diagram(
        640,
        290,
        "Multi-head attention: the input is projected into queries, keys and values for each head; the heads "
        "attend on their own; their outputs are joined and projected once more.",
    )
    d.box(60, 150, "$x$", w=50, h=120, kind="data")
    for head in range(3):
        y = 60 + 90 * head
        d.box(190, y, "$W_Q W_K W_V$", w=110)
        d.line((85, 150), (110, 150), (110, y), (135, y))
        d.line((245, y), (290, y))
        d.box(345, y, "attention", w=110)
        d.line((400, y), (440, y), (440, 150), (465, 150) if head == 1 else (440, 150), arrow=head == 1)
        d.text(345, y + 28, f"head {head + 1}", "note")
    d.box(500, 150, "join", w=70, kind="plain")
    d.line((535, 150), (565, 150))
    d.box(592, 150, "$W_O$", w=54)
    return d


def masks() -> Diagram:
    """What each position may look at."""
    d = Diagram(
        640,
        240,
        "Three attention masks of five positions as squares, rows look at columns. Full: everything is "
        "visible. Causal: the lower triangle. Padded: the columns of padding are hidden.",
    )
    full = [[0.8] * 5 for _ in range(5)]
    causal = [[0.8 if column <= row else 0.0 for column in range(5)] for row in range(5)]
    padded = [[0.8 if column < 3 else 0.0 for column in range(5)] for _ in range(5)]
    for place, (name, note, weights) in enumerate(
        (("full", "encoder", full), ("causal", "decoder", causal), ("padding", "a short sentence", padded))
    ):
        left = 60 + 200 * place
        d.text(left + 60, 20, name, "title")
        d.grid(left, 50, weights, size=24)
        d.text(left + 60, 190, note, "note")
    d.text(28, 110, "query", "note")
    d.text(120, 218, "key →", "note")
    return d


def positions() -> Diagram:
    """Sines of several wavelengths, one for each pair of features."""
    d = Diagram(
        680,
        285,
        "Sinusoidal positions: three sine waves of growing wavelength over forty positions. Each position "
        "has its own combination of heights.",
    )
    for row, period in enumerate((6.28, 20.0, 62.8)):
        middle = 55 + 75 * row
        points = [(60 + 14.5 * t, middle - 26 * math.sin(2 * math.pi * t / period)) for t in range(41)]
        d.line(*points, kind="state", arrow=False, bend=6)
        d.line((60, middle), (645, middle), kind="faint", arrow=False)
        d.text(30, middle, f"$i = {4 * row}$", "note")
    for t in (0, 10, 20, 30, 40):
        d.text(60 + 14.5 * t, 245, str(t), "note")
    d.text(352, 270, "position", "note")
    return d


def beam() -> Diagram:
    """A beam of two keeps the two best prefixes at every step."""
    d = Diagram(
        720,
        330,
        "Beam search with a beam of two: at each step every kept prefix is extended, all extensions are "
        "ranked by their total log-probability, and the two best stay. The best first word, the, does not "
        "lead to the best sentence, a cat sat.",
    )
    nodes = {  # log-probabilities of the table in docs/course/decoding.md, rounded
        "s": (45, 175, "<s>", "0", True),
        "a": (195, 95, "the", "−0.6", True),
        "b": (195, 255, "a", "−0.9", True),
        "aa": (355, 55, "dog", "−1.4", True),
        "ab": (355, 130, "cat", "−1.6", False),
        "ba": (355, 215, "cat", "−1.1", True),
        "bb": (355, 290, "dog", "−2.5", False),
        "aaa": (515, 35, "sat", "−2.3", True),
        "aab": (515, 100, "ran", "−2.4", False),
        "baa": (515, 195, "sat", "−1.4", True),
        "bab": (515, 260, "ran", "−3.0", False),
    }
    for name, (x, y, word, score, kept) in nodes.items():
        if name != "s":
            x0, y0, *_ = nodes[name[:-1] or "s"]
            d.line((x0 + 34, y0), (x - 34, y), kind="flow" if kept else "faint", bend=0)
        d.box(x, y, word, w=64, h=30, kind="layer" if kept else "plain")
        d.text(x, y + 25, score, "note")
    for y, word in ((35, "</s>"), (195, "</s>")):
        d.line((549, y), (606, y), bend=0)
        d.box(640, y, word, w=64, h=30)
    d.text(640, 220, "−1.4, best", "note")
    d.text(640, 60, "−2.3", "note")
    return d
