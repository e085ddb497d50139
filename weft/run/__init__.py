"""A run directory: what training leaves behind, and how it becomes a model again.

    RUN/recipe.yaml          the recipe with every default written out
    RUN/run.json             format and versions it was begun with
    RUN/tokenizer*.json      vocabularies
    RUN/model.safetensors    the best model
    RUN/checkpoints/         to resume from; RUN/checkpoints.json says which is best and last
    RUN/metrics.jsonl, RUN/tensorboard/, RUN/README.md (the model card)

Read next: checked.py, a recipe as objects; begun.py, a run before its training; opened.py, one after it.
"""

from weft.run.begun import begin
from weft.run.checked import Begun
from weft.run.opened import Opened, check, load, open_run
from weft.store.form import FORMAT

__all__ = ["FORMAT", "Begun", "Opened", "begin", "check", "load", "open_run"]
