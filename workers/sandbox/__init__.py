"""Sandbox: child processes that reach nothing, for files that may run code when they are opened."""
