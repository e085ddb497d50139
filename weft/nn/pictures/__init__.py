"""Front ends that turn images, clips or regions into a sequence of places; start with front.py."""
