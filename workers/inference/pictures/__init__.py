"""The pictures of a bundle as pixels, decoded in the sandbox."""

from workers.inference.pictures.reading import Fit, Pixels, Resample, Undecoded, read, unusable

__all__ = ["Fit", "Pixels", "Resample", "Undecoded", "read", "unusable"]
