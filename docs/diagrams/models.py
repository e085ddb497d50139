"""Whole models: stacks, encoder and decoder, the Transformer, and the tasks they are trained on."""

from kit import Diagram


def stack() -> Diagram:
    """Depth: the states of one layer are the inputs of the next."""
    return _layers(
        "A recurrent network of three layers over three steps. Each layer reads the outputs of the layer "
        "below, and each has a state of its own."
    )


def stack_back() -> Diagram:
    """The way back: through time and through the layers."""
    d = _layers(
        "The same network, and the gradient of the loss at the last step: dashed arrows go down through the "
        "layers at each step and back in time in each layer."
    )
    for layer in range(3):
        y = 255 - 85 * layer
        for step in range(3):
            x = 135 + 160 * step
            if layer:
                d.line((x + 16, y + 19), (x + 16, y + 66), kind="back")
            if step:
                d.line((x - 40, y + 11), (x - 120, y + 11), kind="back")
    d.line((471, 20), (471, 66), kind="back")
    d.text(490, 42, "$∂L/∂y_3$", "left")
    return d


def _layers(alt: str) -> Diagram:
    """Three layers over three steps."""
    d = Diagram(600, 340, alt)
    for layer in range(3):
        y = 255 - 85 * layer
        d.line((20, y), (95, y), kind="state")
        for step in range(3):
            x = 135 + 160 * step
            d.box(x, y, f"layer {layer + 1}", w=80, h=38)
            d.line((x + 40, y), (x + (120 if step < 2 else 100), y), kind="state")
            d.line((x, y + (55 if layer == 0 else 66)), (x, y + 19))
        d.text(575, y + 18, f"$h^{layer + 1}_3$")
    for step in range(3):
        d.text(135 + 160 * step, 325, f"$x_{step + 1}$")
        d.line((135 + 160 * step, 66), (135 + 160 * step, 36))
        d.text(135 + 160 * step, 20, f"$y_{step + 1}$")
    return d


def task_shapes() -> Diagram:
    """Which steps read something, and which write something."""
    d = Diagram(
        790,
        215,
        "Four shapes of tasks. One to many: the first step reads, every step writes. Many to one: every step "
        "reads, the last writes. Aligned: every step does both. Unaligned: the first steps read, later "
        "steps write.",
    )
    shapes = (
        ("one to many", (0,), (0, 1, 2), 3),
        ("many to one", (0, 1, 2), (2,), 3),
        ("many to many, aligned", (0, 1, 2), (0, 1, 2), 3),
        ("unaligned", (0, 1, 2), (2, 3, 4), 5),
    )
    left = 35.0
    for name, reads, writes, steps in shapes:
        for step in range(steps):
            x = left + 46 * step
            d.box(x, 105, w=30, h=34)
            if step + 1 < steps:
                d.line((x + 15, 105), (x + 31, 105), kind="state")
            if step in reads:
                d.box(x, 165, w=22, h=18, kind="data")
                d.line((x, 156), (x, 122))
            if step in writes:
                d.box(x, 45, w=22, h=18, kind="data")
                d.line((x, 88), (x, 54))
        d.text(left + 23 * (steps - 1), 15, name, "note title")
        left += 46 * steps + 40
    d.text(395, 200, "read at the bottom, written at the top", "note")
    return d


def bidirectional() -> Diagram:
    """Two layers read in opposite directions; every position knows both sides."""
    d = Diagram(
        620,
        290,
        "A bidirectional layer: one chain of cells reads from left to right, another from right to left; "
        "the states of both are joined at each position.",
    )
    for step in range(4):
        x = 110 + 135 * step
        d.box(x + 16, 170, "cell", w=66, h=34)
        d.box(x - 16, 115, "cell", w=66, h=34)
        d.line((x + 30, 250), (x + 30, 187))
        d.line((x + 30, 222), (x - 35, 222), (x - 35, 132), bend=6)
        d.line((x + 30, 153), (x + 30, 62))
        d.line((x - 16, 98), (x - 16, 62))
        d.text(x + 8, 45, f"$[a_{step + 1}; b_{step + 1}]$")
        d.text(x + 30, 266, f"$x_{step + 1}$")
        if step < 3:
            d.line((x + 45, 170), (x + 122, 170), kind="state")
            d.line((x + 90, 115), (x + 13, 115), kind="state")
    d.text(20, 170, "$a$ →", "note left")
    d.text(20, 115, "← $b$", "note left")
    return d


def word_by_word() -> Diagram:
    """Why a tagger is no translator."""
    d = Diagram(
        760,
        250,
        "Seven English words, he has to go to the house. Above them a tagger writes one German word for "
        "each, in the same order, which is wrong. Below them the right translation of five words; lines show "
        "which words belong together, and some of them cross.",
    )
    words = ("he", "has", "to", "go", "to", "the", "house")
    places = [70 + 103 * n for n in range(len(words))]
    for x, word, written in zip(
        places, words, ("er", "hat", "zu", "gehen", "zu", "das", "Haus"), strict=True
    ):
        d.text(x, 125, word)
        d.line((x, 112), (x, 88), arrow=False)
        d.box(x, 75, w=50, h=26)
        d.line((x, 62), (x, 42))
        d.text(x, 28, written)
    right = {"er": (0,), "muss": (1, 2), "zum": (4, 5), "Haus": (6,), "gehen": (3,)}
    for n, (word, sources) in enumerate(right.items()):
        x = 130 + 125 * n
        d.text(x, 226, word, "title")
        for source in sources:
            d.line((places[source], 140), (x, 210), kind="state" if word == "gehen" else "faint", arrow=False)
    return d


def encoder_decoder() -> Diagram:
    """One vector holds the whole source."""
    d = Diagram(
        760,
        260,
        "Encoder and decoder: the encoder reads the source word by word; its last state starts the decoder, "
        "which writes the target word by word, each word being the input of the next step.",
    )
    words = ("the", "cat", "sleeps")
    for step, word in enumerate(words):
        x = 70 + 95 * step
        d.box(x, 130, w=50, h=44)
        d.line((x, 205), (x, 152))
        d.text(x, 222, word)
        if step < 2:
            d.line((x + 25, 130), (x + 70, 130), kind="state")
    d.line((285, 130), (397, 130), kind="state")
    d.box(341, 130, w=34, h=60, kind="data")
    d.text(341, 182, "summary", "note")
    for step, (given, written) in enumerate(
        (("<s>", "die"), ("die", "Katze"), ("Katze", "schläft"), ("schläft", "</s>"))
    ):
        x = 422 + 92 * step
        d.box(x, 130, w=50, h=44)
        d.line((x, 205), (x, 152))
        d.text(x, 222, given)
        d.line((x, 108), (x, 60))
        d.text(x, 44, written)
        if step < 3:
            d.line((x + 25, 130), (x + 67, 130), kind="state")
            d.line((x + 16, 60), (x + 46, 82), (x + 46, 215), (x + 66, 222), kind="faint", bend=10)
    d.text(165, 90, "encoder", "title")
    d.text(560, 14, "decoder", "title")
    return d


def transformer() -> Diagram:
    """Blocks of attention and feed-forward, with residual lines around them."""
    d = Diagram(
        620,
        560,
        "The Transformer: the encoder repeats a block of self-attention and feed-forward; the decoder "
        "repeats masked self-attention, attention to the encoder, and feed-forward. Each part has a "
        "residual line around it and a normalisation.",
    )

    def sub(x: float, y: float, text: str, before: float) -> None:
        d.box(x, y, text, w=176, h=40)
        d.line((x, before), (x, y + 20))
        d.op(x, y - 42, "+", r=11)
        d.line((x, y - 20), (x, y - 31))
        d.dot(x, y + 34)
        d.line((x, y + 34), (x - 108, y + 34), (x - 108, y - 42), (x - 11, y - 42))

    d.box(150, 315, w=240, h=250, kind="part")
    sub(150, 380, "self-attention", 490)
    sub(150, 265, "feed-forward", 327)
    d.line((150, 212), (150, 160), (320, 160), (320, 275), (372, 275))
    d.box(460, 260, w=262, h=380, kind="part")
    sub(460, 390, "masked self-attention", 490)
    sub(460, 275, "attention to encoder", 337)
    sub(460, 160, "feed-forward", 222)
    d.line((460, 107), (460, 52))
    d.text(460, 36, "probabilities of the next token")
    d.text(235, 146, "keys and values", "note")
    for x, name in ((150, "source"), (460, "target so far")):
        d.box(x, 506, "embedding + position", w=180, kind="data")
        d.line((x, 550), (x, 522))
        d.text(x + 16, 545, name, "left")
    d.text(52, 172, "$N$ ×")
    d.text(562, 85, "$N$ ×")
    return d


def norm_places() -> Diagram:
    """Post-norm stands on the residual line, pre-norm beside it."""
    d = Diagram(
        720,
        330,
        "Two places of the normalisation. After: each sum passes through a normalisation on the main line. "
        "Before: the main line runs from input to output through additions only, and each part normalises "
        "its own input.",
    )
    d.text(20, 22, "norm after the sum (2017)", "title left")
    for begin, end in ((20, 270), (330, 600), (660, 705)):
        d.line((begin, 120), (end, 120), kind="state")
    for place, name in enumerate(("attention", "feed-forward")):
        x = 60 + 330 * place
        d.dot(x, 120)
        d.line((x, 120), (x, 65), (x + 30, 65))
        d.box(x + 87, 65, name, w=114)
        d.line((x + 144, 65), (x + 170, 65), (x + 170, 107))
        d.op(x + 170, 120, "+")
        d.box(x + 240, 120, "norm", w=60)
    d.text(20, 182, "norm before each part", "title left")
    d.line((20, 290), (705, 290), kind="state")
    for place, name in enumerate(("attention", "feed-forward")):
        x = 60 + 330 * place
        d.dot(x, 290)
        d.line((x, 290), (x, 235), (x + 20, 235))
        d.box(x + 45, 235, "norm", w=50)
        d.line((x + 70, 235), (x + 100, 235))
        d.box(x + 157, 235, name, w=114)
        d.line((x + 214, 235), (x + 248, 235), (x + 248, 277))
        d.op(x + 248, 290, "+")
    d.text(600, 312, "residual stream", "note")
    return d


def pretraining() -> Diagram:
    """What a word may look at, by model."""
    d = Diagram(
        760,
        300,
        "Which positions each model may look at while it predicts one word. GPT: only those before. "
        "BERT: all, the word itself being hidden. ELMo: one network reads those before, another those after.",
    )
    words = ("the", "cat", "sat", "here")
    for place, (name, note) in enumerate(
        (("GPT", "left to right"), ("BERT", "the word is masked"), ("ELMo", "two directions, joined"))
    ):
        left = 40 + 245 * place
        d.text(left + 90, 22, name, "title")
        d.text(left + 90, 44, note, "note")
        for number, word in enumerate(words):
            x = left + 60 * number
            hidden = name == "BERT" and number == 2
            d.box(x, 230, "[mask]" if hidden else word, w=54, h=30, kind="data")
        target = left + 120
        d.box(target, 100, "sat", w=56, h=30)
        for number in range(4):
            x = left + 60 * number
            seen = {"GPT": number < 2, "BERT": True, "ELMo": number != 2}[name]
            if seen:
                kind = "back" if name == "ELMo" and number == 3 else "flow"
                d.line((x, 214), (target, 116), kind=kind, bend=0)
    d.text(360, 280, "bottom: what is read; top: what is predicted", "note")
    return d


def evaluating() -> Diagram:
    """What each split is for, and the two kinds of chance in a score."""
    d = Diagram(
        760,
        300,
        "Left: training data fit the weights, validation data choose checkpoint and settings as often as "
        "needed, test data give one report. Right: a table of right and wrong answers, with a row for each "
        "seed and a column for each test item; both rows and columns are drawn at random.",
    )
    d.text(190, 22, "what each split is for", "title")
    for x, name, width, use in (
        (95, "train", 150, "weights"),
        (225, "valid", 80, "checkpoint\nand settings"),
        (335, "test", 80, "report"),
    ):
        d.box(x, 72, name, w=width, h=40, kind="data")
        d.line((x, 92), (x, 148))
        d.box(x, 172, use, w=112 if "\n" in use else 80, h=48, kind="plain")
    d.line((225, 196), (225, 236), (95, 236), (95, 196), kind="back")
    d.text(160, 256, "as often as needed", "note")
    d.text(335, 216, "once", "note")
    d.text(590, 22, "two kinds of chance", "title")
    d.text(600, 52, "test items →", "note")
    right = (
        (1, 1, 0, 1, 1, 0, 1, 1, 0, 1),
        (1, 1, 0, 1, 0, 0, 1, 1, 1, 1),
        (1, 0, 0, 1, 1, 0, 1, 1, 0, 0),
        (1, 1, 0, 1, 1, 1, 1, 0, 0, 1),
    )
    d.grid(480, 70, [[0.7 * one for one in row] for row in right], size=24)
    for row, values in enumerate(right):
        y = 82 + 24 * row
        d.text(470, y, f"seed {row + 1}", "note right")
        d.text(732, y, f"{sum(values)}/10", "note left")
    d.text(600, 200, "other columns: bootstrap over items", "note")
    d.text(600, 222, "other rows: spread over seeds", "note")
    d.text(600, 244, "two systems on the same columns: paired test", "note")
    return d
