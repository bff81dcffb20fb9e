"""A captioner as ONNX graphs with a manifest: read without onnx, run by nothing here."""

from service.contract.formats.onnx_bundles.judging import Bundle, is_one, judge, words_of
from service.contract.formats.onnx_bundles.manifest import FILE, Manifest

__all__ = ["FILE", "Bundle", "Manifest", "is_one", "judge", "words_of"]
