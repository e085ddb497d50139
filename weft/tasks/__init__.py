"""Tasks, one a folder: what an example is, how it is read, batched, scored and shown.

Start with task.py (the contract), then translate/task.py. shared/ holds what several tasks use.
"""
