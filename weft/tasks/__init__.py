"""Tasks, a folder for each: what an example is and how it is read, batched, scored and shown.

Start with task.py (the contract), then translate/task.py. The other files are used by several tasks.
"""

from weft import lazy

__getattr__, __dir__ = lazy.attach(__name__)
