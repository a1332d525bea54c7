"""Calibrators: a classifier's probabilities made honest after training."""
