"""Files of this machine that are given to the service."""
