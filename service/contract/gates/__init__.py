"""The language of gates, and their verdicts."""
