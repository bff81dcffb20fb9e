"""Routes by which people look through images."""
