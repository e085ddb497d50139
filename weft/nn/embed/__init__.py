"""Front ends, one a file: raw input becomes [B, S, D]."""
