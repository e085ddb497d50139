"""Several runs side by side. Start with measured.py, one run's facts; then report.py."""
