"""Plans: requests as graphs of works. Pure functions, except `assets`, which reads files."""
