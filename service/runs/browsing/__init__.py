"""What people look through: captions and images found and sorted, labels that are in use."""
