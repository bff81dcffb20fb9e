"""Changes of what is kept: labels and notes, deletions, and who made them."""
