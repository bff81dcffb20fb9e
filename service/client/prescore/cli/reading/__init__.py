"""prescore list, captions, tokens: what evaluations have."""
