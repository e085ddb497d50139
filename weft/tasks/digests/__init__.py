"""What the task summarise adds to translation: scores and baselines. Start with evaluation.py."""
