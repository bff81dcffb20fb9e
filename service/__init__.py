"""The service: API, database and queues. Imports neither torch nor numpy."""
