"""Backups, written while the service runs, and restored: a file with the record and its objects."""
