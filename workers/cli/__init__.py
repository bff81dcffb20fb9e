"""The workers' commands, a file for each, and what they share."""
