"""Access: keys, tokens of CI jobs, and the audit log."""
