"""The recipe for a user's data, on this machine: what `weft init` writes and `weft.fit` trains.

It loads no torch for a task with one model. Read next: ../tasks/init.py, the recipe of a task; candidates.py,
the models that are tried first.
"""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from weft import machine
from weft.errors import ConfigError
from weft.tasks.init import Init, NewRecipe

if TYPE_CHECKING:
    from weft.train.reporting import Reporter


def new_recipe(
    init: Init,
    given: Mapping[str, Any],
    folder: Path,
    *,
    say: Callable[[str], None],
    screen: "Callable[[], Reporter]",
) -> NewRecipe:
    """The recipe of the model that a trial keeps, whose runs are in `folder`; or without a trial."""
    trial = init.trial.asked(given) if init.trial else None
    usual = for_this_machine(init.write(given, say))
    if trial is None or given["model"] is not None or given["no_trial"] or given.get("start"):
        return usual
    if why := trial.refusal(usual):
        say(why)
        return usual
    from weft.tune.candidates import choose

    recipes = {
        one.name: for_this_machine(init.write({**given, "model": one.name}, lambda text: None))
        for one in trial.candidates
    }
    texts = {name: one.recipe for name, one in recipes.items()}
    try:
        found = choose(trial, texts, folder, say=say, screen=screen, plugins=init.plugin()[1:])
    except ConfigError as error:
        say(f"no model was trained ({error}): the recipe is for {trial.untried}; --model names another")
        return usual
    say("\n".join(found.table(seconds=True)))
    kept = recipes[found.kept.name]
    others = [name for name in recipes if name != found.kept.name]
    another = (
        f"with the same options, `weft init {init.task} --model {' or '.join(others)}` writes another one"
    )
    said = [*found.table(), another]
    comment = "".join(f"# {line}\n" for line in said)
    whole = None if found.kept.cut else found.kept.run
    return kept._replace(recipe=kept.recipe.replace("\ntask:", f"\n{comment}task:", 1), run=whole)


def for_this_machine(new: NewRecipe) -> NewRecipe:
    """The same with large batches if this machine has a GPU."""
    line = "  scale: gpu                        # larger updates than below, for this machine's GPU; or cpu"
    scaled = new.recipe.replace("\ntraining:\n", f"\ntraining:\n{line}\n", 1)
    return new._replace(recipe=scaled) if machine.has_gpu() else new
