"""The checks, imported when they are first used (weft/lazy.py)."""

from weft.testing.cells import check_cell as check_cell
from weft.testing.exercises import check_exercise as check_exercise
from weft.testing.metrics import check_metric as check_metric
from weft.testing.scores import check_score as check_score
