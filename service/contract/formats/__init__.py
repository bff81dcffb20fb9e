"""The files that people bring, read without numpy: bundles, checkpoint headers, outputs."""
