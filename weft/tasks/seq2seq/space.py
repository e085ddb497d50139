"""What `weft tune` tries for tasks that write a text for a source. Read next: ../space.py."""

from dataclasses import replace

from weft.tasks.space import Range, Recipe, Space, usual

DROPOUTS = "model.encoder.dropout", "model.decoder.dropout"


def space(recipe: Recipe) -> Space:
    """The usual settings, with one dropout for encoder and decoder where the recipe has one."""
    found = usual(recipe)
    model = recipe["model"]
    if set(DROPOUTS) <= found.keys() and model["encoder"]["dropout"] == model["decoder"]["dropout"]:
        del found[DROPOUTS[1]]
        found[DROPOUTS[0]] = replace(found[DROPOUTS[0]], also=DROPOUTS[1:])
    return found


def decoding_space(recipe: Recipe) -> Space:
    """The width of the beam and the length penalty, for a recipe that searches with a beam."""
    own = recipe["decoding"]
    if own["search"] != "beam":
        return {}
    beam = {"decoding.beam": Range(values=(1, 3, 5, 8))} if own["diverse"] == 1 else {}
    return {**beam, "decoding.length_penalty": Range(values=(0.6, 0.8, 1.0, 1.2, 1.4))}
