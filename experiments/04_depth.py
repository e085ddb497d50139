"""Claim 4: 4 to 8 recurrent layers are practical; more add little.

    python experiments/04_depth.py

Tested: LSTM language models of English letters with residual connections and 1 to 16 layers. All have about 60,000
parameters, so deeper ones are narrower, and train for the same 300 updates, each depth at the best of three
learning rates. "Practical" is tested as better than one layer, "little" as less for the doubling from 8 to 16 than for
a doubling up to 8 on average.

Picture: Nats a letter over the number of layers.

Tries: In the first design (seeds 11 to 16) all depths had one learning rate, and the claim was called contradicted
because 8 narrow layers were worse than one.

Limits: Small models, trained briefly; a deeper model takes longer for the same updates. Without residual connections
see claim 14.

Source: Wu et al. 2016, section 3.1; Barone et al. 2017.
"""

from problems import Text, english_letters, nats, writer
from study import Part, begin, curves, learn, picture, plant
from weft.models import Generator
from weft.nn.decoders.recurrent import RecurrentDecoder

DEPTHS, PARAMETERS, RATES = (1, 2, 4, 8, 16), 60_000, (5e-3, 1e-2, 2e-2)
LARGE = "layers of hundreds of units after long training"
PARTS = {
    "4": Part("One layer loses more nats a letter than 4 layers.", "nats", beyond=LARGE),
    "8": Part("One layer loses more nats a letter than 8 layers.", "nats", beyond=LARGE),
    "16": Part(
        "A doubling up to 8 layers gains more, on average, than that from 8 to 16.", "nats", beyond=LARGE
    ),
}
VALID, LETTERS = english_letters("valid"), english_letters("test")


def stack(depth: int, width: int) -> Generator:
    """A language model of letters."""
    decoder = RecurrentDecoder(width, sizes=(width,) * depth, residual=True)
    return writer(decoder, width, LETTERS.letters)


def width_for(depth: int) -> int:
    """The width at which so many layers have about PARAMETERS parameters."""
    sizes = {width: sum(p.numel() for p in stack(depth, width).parameters()) for width in range(8, 100)}
    return min(sizes, key=lambda width: abs(sizes[width] - PARAMETERS))


WIDTHS = {depth: width_for(depth) for depth in DEPTHS}


def loss(depth: int, rate: float, seed: int, quick: bool, text: Text) -> float:
    """Nats a letter after training."""
    chance = plant(seed)
    model = stack(depth, WIDTHS[depth])
    learn(model, lambda: text.draw(chance, 16, 50), 2 if quick else 300, rate=rate)
    return nats(model, text.held_out(50, 8 if quick else 64))


def main() -> None:
    """Choose rates, train, judge, draw."""
    study = begin(__doc__, PARTS, seeds=8, first=201, tries=2)
    rates = study.best_rates(
        "layers", DEPTHS, RATES, lambda depth, rate, seed: loss(depth, rate, seed, study.quick, VALID)
    )
    found = study.repeat(
        lambda seed, quick: {
            "residual LSTM": [loss(depth, rates[depth], seed, quick, LETTERS) for depth in DEPTHS]
        }
    )
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
