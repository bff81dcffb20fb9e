"""Prescore's files: written completely or not at all, with the same bytes for equal content."""
