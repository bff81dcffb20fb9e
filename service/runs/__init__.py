"""A file for each kind of run, and their common parts: gates, baselines, forecasts, search."""
