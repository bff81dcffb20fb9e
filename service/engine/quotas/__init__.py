"""Quotas: what teams have used, and whether there is room for more."""
