"""How sure a score is, and a difference of two scores: images are drawn anew, and their statistics
summed anew.
"""
