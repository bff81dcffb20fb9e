"""Middleware: connections, the access log, origins, keys and rate limits of requests."""
