"""Routes by which people look through images, and find labels to choose from."""
