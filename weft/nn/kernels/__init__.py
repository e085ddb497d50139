"""The hot paths, each behind one function with a plain twin that it must agree with."""
