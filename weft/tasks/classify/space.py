"""What `weft tune` tries for a classifier. Read next: model.py; ../space.py."""

from weft.tasks.space import Range, Recipe, Space, usual


def space(recipe: Recipe) -> Space:
    """Pool and network, or the items of a linear model; without what several labels or subclasses refuse."""
    found = usual(recipe)
    several, finer = (recipe["data"][name] is not None for name in ("separator", "finer"))
    if several:
        del found["model.smoothing"]
    if recipe["model"]["bag"] is None:
        pools = Range(
            values=("mean", "max", "last", {"use": "queries", "num_queries": 4, "score": "additive"})
        )
        if recipe["model"]["encoder"]["use"] == "filters":
            found["model.encoder.widths"] = Range(values=([2, 3], [2, 3, 4], [3, 4, 5], [1, 2, 3, 4, 5]))
        return {**found, "model.pool": pools}
    rate = recipe["training"]["optimiser"]["lr"]  # far from it, a linear model diverges or stays at zero
    initial = {} if several or finer else {"model.bag.naive_bayes": Range(values=(False, True))}
    return {
        "training.optimiser.lr": Range(low=rate / 2, high=rate * 2, log=True),
        "model.bag.ngrams": Range(low=1, high=3, step=1),
        "model.bag.min_count": Range(low=1, high=5, step=1),
        "model.bag.weight": Range(values=("presence", "frequency", "tfidf")),
        **initial,
        **{name: one for name, one in found.items() if name == "model.smoothing"},
    }
