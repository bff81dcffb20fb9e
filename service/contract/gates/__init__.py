"""The language of gates, and what becomes of a gate."""
