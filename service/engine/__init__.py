"""The engine of tasks: database, tables, leases, queues and blobs."""
