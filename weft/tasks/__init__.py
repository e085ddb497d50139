"""Tasks, a folder for each: what an example is and how it is read, batched, scored and shown.

Start with task.py (the contract), then translate/task.py. shared/ holds what several tasks use.
"""
