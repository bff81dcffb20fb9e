"""Retention: how long runs are kept, and deletion of runs and uploads."""
