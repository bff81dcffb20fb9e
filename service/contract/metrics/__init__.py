"""The metrics that there are, and how a score says how it was computed."""
