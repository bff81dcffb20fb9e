"""What waits: whose turn it is, and how much may wait."""
