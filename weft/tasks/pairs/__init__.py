"""What tasks on pairs of sequences share: data, model, batches, search, scores. Start with data.py."""
