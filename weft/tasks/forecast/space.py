"""What `weft tune` tries for a forecaster. Read next: model.py; ../space.py."""

from weft.tasks.space import Range, Recipe, Space, usual, whole


def space(recipe: Recipe) -> Space:
    """How far back it looks, how a window is scaled, and the network."""
    found = usual(recipe)
    lookback, hidden = recipe["data"]["lookback"], recipe["model"]["forecaster"].get("hidden")
    if hidden:
        found["model.forecaster.hidden"] = whole(hidden // 2, hidden * 2)
    found["data.lookback"] = Range(values=(lookback, 2 * lookback, 3 * lookback))
    return {**found, "model.normalise": Range(values=("last", "mean", "mean_std", "none"))}
