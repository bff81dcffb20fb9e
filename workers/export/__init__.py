"""Writes ONNX bundles of PyTorch modules, where the modules are: for `prescore export`."""

from workers.export.described import Captioner

__all__ = ["Captioner"]
