"""prescore list, captions, tokens, compare: what evaluations have."""
