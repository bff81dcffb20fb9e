"""What becomes of runs and uploads later: changes, deletions, and the list of them."""
