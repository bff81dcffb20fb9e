"""The worker process, which leases tasks, and its warm child, which computes them."""
