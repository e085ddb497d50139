"""Embeddings, one per file: from raw input to [B, S, D]."""
