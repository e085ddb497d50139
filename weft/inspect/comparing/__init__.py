"""Compare several runs. Start with measured.py, the facts about one run; then report.py."""
