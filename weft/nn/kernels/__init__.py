"""Fast implementations of the hot paths; each is one function with a plain twin that it must agree with."""
