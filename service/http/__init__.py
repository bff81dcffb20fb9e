"""The HTTP interface: one application, its routes, what an answer needs."""
