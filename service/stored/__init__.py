"""What people bring and the service keeps: checkpoints and datasets."""
