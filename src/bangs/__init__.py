"""Graph self-training: few labels in, calibrated predictions and a reason for every pseudo-label out."""
