"""Writes ONNX bundles of PyTorch modules, where the modules are: for `prescore export`."""

from workers.export.captioner import ExportedCaptioner as Captioner

__all__ = ["Captioner"]
