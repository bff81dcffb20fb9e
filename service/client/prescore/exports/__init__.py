"""Finished evaluations, written for other tools: a module for each format."""
