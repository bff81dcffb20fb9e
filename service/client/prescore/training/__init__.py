"""A training run whose checkpoints are scored while it goes on."""
