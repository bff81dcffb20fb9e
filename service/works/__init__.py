"""The engine of works: the record and its tables, leases, the queue, the blobs."""
