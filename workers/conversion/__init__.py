"""What other programs wrote becomes the canonical form, by a map that people write."""
