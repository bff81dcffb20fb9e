"""The HTTP interface: the application, its routes, errors, uploads and polling."""
