"""Calibrators: they fit the probabilities of a trained classifier to the validation labels."""
