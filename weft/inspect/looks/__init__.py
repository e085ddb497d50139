"""Pictures beside the answers of `weft predict`, one file a task, named as the task. Start with look.py."""
