"""The output layer: a softmax over the vocabulary, and its loss."""
