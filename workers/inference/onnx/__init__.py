"""Captioners whose graphs onnxruntime runs, in a child in the sandbox."""
