"""How sure a score is, and a difference between two: images drawn anew, statistics summed anew."""
