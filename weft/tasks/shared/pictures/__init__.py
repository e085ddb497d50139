"""Shared by tasks on pictures: data, batches, models, checks."""
