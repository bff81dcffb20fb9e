"""Boards: the scores of a metric on a split, ranked or over time, with others beside them."""
