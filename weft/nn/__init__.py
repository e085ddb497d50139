"""Modules: they know tensors, never files, text or recipes.

cells/ one recurrence a file; scores/ one attention score a file; recurrent.py runs cells over time;
attention.py looks back; encoders/ and decoders/ put them together; pools/ make one
vector of a sequence; heads/ predict.
"""
