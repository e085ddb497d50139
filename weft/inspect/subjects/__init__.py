"""What a run makes of one input, ready to be looked at: one file a task. Start with subject.py."""
