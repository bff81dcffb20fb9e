"""A captioner as ONNX graphs with a manifest: read without onnx, run by nothing here."""

from service.contract.formats.onnx_bundles.judging import Bundle, judge, words_of
from service.contract.formats.onnx_bundles.manifest import FILE, Manifest, Pictures, Pieces

__all__ = ["FILE", "Bundle", "Manifest", "Pictures", "Pieces", "judge", "words_of"]
