"""Front ends that turn pictures, clips or given regions into a row of places; start with front.py."""
