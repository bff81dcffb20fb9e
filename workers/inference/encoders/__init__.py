"""Encoders: from pictures to features, by a network of a registered file."""
