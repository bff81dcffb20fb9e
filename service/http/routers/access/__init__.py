"""Routes about who asks."""
