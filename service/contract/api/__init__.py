"""Models of the HTTP interface's requests; its answers are those of prescore.models."""
