"""What tasks share that write a sequence for a source. Start with base.py."""
