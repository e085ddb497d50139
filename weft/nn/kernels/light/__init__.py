"""Recurrences without a matrix (SRU, SSRU, minGRU, minLSTM): plain, compiled, by Triton."""
