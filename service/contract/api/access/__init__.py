"""Answers about who asks."""
