"""The public API, imported when it is first used (weft/lazy.py)."""

from weft import data as data
from weft import metrics as metrics
from weft import nn as nn
from weft import search as search
from weft import testing as testing
from weft.commands.comparison import compare as compare
from weft.fitting import check as check
from weft.fitting import fit as fit
from weft.fitting import resume as resume
from weft.run import load as load
from weft.version import __version__ as __version__
