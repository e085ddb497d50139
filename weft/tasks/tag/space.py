"""What `weft tune` tries for a tagger. Read next: model.py; ../space.py."""

from dataclasses import replace

from weft.tasks.space import Range, Recipe, Space, usual, whole


def space(recipe: Recipe) -> Space:
    """The network, how words are spelled, and whether neighbouring tags are scored together."""
    found = usual(recipe)
    embedding = recipe["model"]["embedding"]
    spelled = embedding["spelled"]
    if embedding["characters"] != "none" and spelled:
        found["model.embedding.spelled"] = whole(spelled // 2, spelled * 2)
    found["model.embedding.replaced"] = Range(low=0.0, high=0.5)
    if recipe["model"]["class_weights"] != "none":  # not with a CRF
        return found
    found["model.smoothing"] = replace(found["model.smoothing"], unless="model.crf")
    return {**found, "model.crf": Range(values=(False, True))}
