"""Parts of the tasks elmo (model.py, text.py, comparer.py) and masked (masking.py, filler.py)."""
