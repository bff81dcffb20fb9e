"""Scores of a whole set while it is being decoded: in what order, how sure, and when sure enough.

Images are decoded in a random order, stratified by what pre-gen scores tell about them (`order`).
From the first n of N images, the score of the whole set is estimated, using what is known about all
N already (`estimation`). The interval is valid however often one looks (`spending`).
"""
