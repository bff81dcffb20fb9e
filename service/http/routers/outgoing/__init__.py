"""Routes of what the service sends by itself."""
