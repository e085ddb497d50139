"""What the tasks caption, images and draw share: data, batches, models, checks."""
