"""Claim 4: 4 to 8 recurrent layers are practical; more add little.

    python experiments/04_depth.py

LSTM language models of letters, of 1 to 8 layers of the same size, plain and residual, with the same updates.
Source: Wu et al. 2016, section 3.1; Barone et al. 2017. A machine this small says little about large models.
"""

from problems import english_letters, nats, writer
from study import begin, interval, learn, picture, plant
from weft.nn.decoders.recurrent import RecurrentDecoder

SIZE = 40
DEPTHS = (1, 2, 4, 8)


def main() -> None:
    """Train, judge, draw."""
    study = begin(4, "4 to 8 recurrent layers are practical; more add little.", seeds=3)
    letters = english_letters()
    held = letters.held_out(50, 8 if study.quick else 48)
    found: dict[tuple[bool, int], list[float]] = {
        (way, depth): [] for way in (False, True) for depth in DEPTHS
    }
    for seed in study.seeds:
        for residual, depth in found:
            chance = plant(seed)
            decoder = RecurrentDecoder(SIZE, sizes=(SIZE,) * depth, residual=residual)
            model = writer(decoder, SIZE, letters.letters)
            learn(
                model,
                lambda chance=chance: letters.draw(chance, 16, 50),
                2 if study.quick else 250,
                rate=5e-3,
            )
            found[residual, depth].append(nats(model, held))
    means = {}
    for (residual, depth), values in found.items():
        means[residual, depth] = study.measured(
            f"nats a letter, {depth} layers, {'residual' if residual else 'plain'}", values
        )
    best = min(means, key=means.__getitem__)
    study.expect("the best of all has 4 or 8 layers", best[1] >= 4)
    study.expect(
        "residual, 8 layers are trained at all: no worse than one layer", means[True, 8] <= means[True, 1]
    )
    study.expect(
        "from 4 layers to 8 less is gained than from 1 to 4 (residual)",
        means[True, 4] - means[True, 8] < means[True, 1] - means[True, 4],
    )
    figure, (axes,) = picture()
    for residual in (False, True):
        spread = [interval(found[residual, depth]) for depth in DEPTHS]
        axes.plot(DEPTHS, [mean for mean, _ in spread], marker="o", label="residual" if residual else "plain")
    axes.set(xlabel="layers", ylabel="nats a letter after the same updates", xticks=DEPTHS)
    axes.legend()
    study.finish(
        figure, "250 updates of a small model: what depth gives after long training was not measured."
    )


if __name__ == "__main__":
    main()
