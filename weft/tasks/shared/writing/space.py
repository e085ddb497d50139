"""What `weft tune` tries for tasks that write a text for a source. Read next: ../../space.py."""

from dataclasses import replace

from weft.tasks.space import Recipe, Space, usual

DROPOUTS = "model.encoder.dropout", "model.decoder.dropout"


def space(recipe: Recipe) -> Space:
    """The usual settings, with one dropout for encoder and decoder where the recipe has one."""
    found = usual(recipe)
    encoder, decoder = recipe["model"]["encoder"], recipe["model"]["decoder"]
    if encoder.get("dropout") == decoder.get("dropout") and all(name in found for name in DROPOUTS):
        del found[DROPOUTS[1]]
        found[DROPOUTS[0]] = replace(found[DROPOUTS[0]], also=DROPOUTS[1:])
    return found
