"""The self-training loop and the methods that run on it."""
