"""Captioners of packages that the operator has installed on this machine."""
