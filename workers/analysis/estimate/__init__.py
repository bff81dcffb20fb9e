"""Scores of a whole set while it is being decoded: in what order, how sure, and when sure enough.

Images are decoded in a random order, stratified by what pre-gen scores tell of them (`order`). Of
the first n of N, an estimate of the whole's score is made that uses what is known of all N already
(`estimation`), with an interval that keeps its word however often one looks (`spending`).
"""
