"""N-gram language models: counting, smoothing, queries, ARPA files. Start with kneser_ney.py."""
