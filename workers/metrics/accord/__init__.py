"""The metric `accord`: a few ways in which a caption agrees with its references, weighted so that
people's captions score higher than wrong ones. Nothing in it was learned from judgements of people.
"""
