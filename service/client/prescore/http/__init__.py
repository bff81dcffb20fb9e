"""HTTP as the client speaks it: one transport, and what goes over it."""
