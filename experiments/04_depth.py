"""Claim 4: 4 to 8 recurrent layers are practical; more add little.

    python experiments/04_depth.py

Tested: LSTM language models of English letters with residual connections and 1 to 16 layers. All have about 60,000
parameters, so deeper ones are narrower, and train for the same 300 updates. "Practical" is tested as better than one
layer, "little" as less for the doubling from 8 to 16 than for a doubling up to 8 on average.

Picture: Nats a letter over the number of layers.

Limits: Small models, trained briefly; a deeper model takes longer for the same updates. Without residual connections
see claim 14.

Source: Wu et al. 2016, section 3.1; Barone et al. 2017.
"""

from typing import Any

from problems import english_letters, nats, writer
from study import Part, begin, curves, learn, picture, plant
from weft.models import Generator
from weft.nn.decoders.recurrent import RecurrentDecoder

DEPTHS, PARAMETERS = (1, 2, 4, 8, 16), 60_000
PARTS = {
    "4": Part("One layer loses more nats a letter than 4 layers.", "nats"),
    "8": Part("One layer loses more nats a letter than 8 layers.", "nats"),
    "16": Part("A doubling up to 8 layers gains more, on average, than that from 8 to 16.", "nats"),
}
LETTERS = english_letters()


def stack(depth: int, width: int) -> Generator:
    """A language model of letters."""
    decoder = RecurrentDecoder(width, sizes=(width,) * depth, residual=True)
    return writer(decoder, width, LETTERS.letters)


def width_for(depth: int) -> int:
    """The width at which so many layers have about PARAMETERS parameters."""
    sizes = {width: sum(p.numel() for p in stack(depth, width).parameters()) for width in range(8, 100)}
    return min(sizes, key=lambda width: abs(sizes[width] - PARAMETERS))


WIDTHS = {depth: width_for(depth) for depth in DEPTHS}


def once(seed: int, quick: bool) -> dict[str, Any]:
    """The loss of each depth."""
    losses = []
    for depth in DEPTHS:
        chance = plant(seed)
        model = stack(depth, WIDTHS[depth])
        learn(model, lambda: LETTERS.draw(chance, 16, 50), 2 if quick else 300, rate=5e-3)
        losses.append(nats(model, LETTERS.held_out(50, 8 if quick else 64)))
    return {"residual LSTM": losses}


def main() -> None:
    """Train, judge, draw."""
    study = begin(__doc__, PARTS)
    found = study.repeat(once)
    one, _, four, eight, sixteen = found["residual LSTM"].T
    study.compare("4", one, four)
    study.compare("8", one, eight)
    study.compare("16", (one - eight) / 3, eight - sixteen)
    study.numbers["units a layer"] = ", ".join(str(width) for width in WIDTHS.values())
    figure, (axes,) = picture()
    curves(axes, DEPTHS, found)
    axes.set_xscale("log", base=2)
    axes.set_xticks(DEPTHS, [str(depth) for depth in DEPTHS])
    axes.set(xlabel="layers, about 60,000 parameters each", ylabel="nats a letter, held-out text")
    study.finish(figure)


if __name__ == "__main__":
    main()
