"""Prescore's own files: whole or not at all, and the same bytes each time."""
