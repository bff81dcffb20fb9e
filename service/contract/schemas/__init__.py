"""What the HTTP interface answers. Nothing has a default: what is said is there."""
