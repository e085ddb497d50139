"""Shared by tasks that predict labels: batches, data, splits."""
