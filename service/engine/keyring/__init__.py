"""Keys: who may ask."""
