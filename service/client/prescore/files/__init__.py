"""Local files that are sent to the service."""
