"""What the task summarise adds to translation: scores and floors. Start with evaluation.py."""
