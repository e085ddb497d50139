"""N-gram language models: counted, smoothed, asked, written as ARPA. Start with kneser_ney.py."""
