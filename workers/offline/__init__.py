"""The same works with no service: what `prescore score`, `judge`, `probe` and `lab` do here."""
