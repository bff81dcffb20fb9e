"""How many images the engine takes at once.

A product's last bits depend on its size, so a block is part of what a result is: works are sharded
in whole blocks, and both sides must agree on them. Images that are decoded in an order of their own
share blocks with others than in the split's: the order is part of what their captions are known by.
"""

BLOCK_IMAGES = 128
USUAL_SEARCH = 3 * 50  # a beam of 3, 50 words


def decoding_block(beam: int, max_words: int) -> int:
    """Fewer images where each is searched for longer: a block takes about the same time."""
    return max(1, min(BLOCK_IMAGES, BLOCK_IMAGES * USUAL_SEARCH // (beam * max_words)))
