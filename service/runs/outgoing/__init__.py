"""What webhooks are told of runs that have ended."""
