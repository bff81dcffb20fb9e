"""The engine of works: database, tables, leases, queues and blobs."""
