"""Backups: one file with the record and its objects, made while the service runs."""
