"""The front door: API, record, queue. Imports neither torch nor numpy."""
