"""The metrics of captions, a module for each family."""
