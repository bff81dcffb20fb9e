"""Plans: requests as graphs of tasks. Pure functions, except `assets`, which reads files."""
