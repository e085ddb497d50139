"""What lies on disk: atomic files, typed JSON, weights, locks, the cache.

Read next: files.py, which writes atomically; jsonfile.py, which reads typed JSON; weights.py.
"""
