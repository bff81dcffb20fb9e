"""Tasks on this machine without a service, for `prescore score`, `judge`, `probe` and `lab`."""
