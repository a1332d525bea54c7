"""Training: trainers, epochs, mini-batches and layer-wise inference."""
