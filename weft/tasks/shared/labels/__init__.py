"""What tasks that give labels share: batches, data, splits."""
