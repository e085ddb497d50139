"""Import weights from torch.nn modules and from checkpoints of the `transformers` library.

Start with checkpoint.py, which reads a directory, and families, the models that it can build. The
`transformers` library itself is not needed.
"""
