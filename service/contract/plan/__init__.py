"""Plans: requests as graphs of tasks. Pure functions."""
