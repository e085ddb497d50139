"""Import weights from torch.nn modules and from checkpoints of the `transformers` library.

Start with checkpoint.py, which reads a directory, and families/gpt2.py, the simplest family. The `transformers`
library itself is not needed.
"""
