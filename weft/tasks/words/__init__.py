"""Parts of the task embeddings: data.py, corpus.py, model.py, nearest.py, evaluation.py."""
