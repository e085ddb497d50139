"""Tasks, one a file: what an example is, how it is read, batched, scored and shown.

Start with task.py (the contract), then translate.py.
"""
