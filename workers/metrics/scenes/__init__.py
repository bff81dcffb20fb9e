"""Scene graphs: what SPICE compares, parsed once and kept."""
