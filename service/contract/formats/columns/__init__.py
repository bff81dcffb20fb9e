"""Columns that somebody's own code computed: the file's header, its values, and its split."""
