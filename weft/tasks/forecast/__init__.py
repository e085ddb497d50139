"""The next values of series. Start with task.py."""
