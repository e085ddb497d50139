"""A run directory: what training leaves behind, and how it becomes a model again.

    RUN/recipe.yaml          the recipe with every default written out
    RUN/run.json             format and versions it was begun with
    RUN/tokenizer*.json      vocabularies
    RUN/model.safetensors    the best model
    RUN/whole/               vocabularies of all texts, if a solved model was fitted to all of them
    RUN/checkpoints/         to resume from; RUN/checkpoints.json says which is best and last
    RUN/metrics.jsonl, RUN/tensorboard/, RUN/README.md (the model card)

Read next: loading.py, a trained run; training.py, one before its training.
"""

from weft.run.loading import LoadedRun as LoadedRun
from weft.run.loading import load as load
from weft.run.loading import open_run as open_run
