"""The worker process, which leases works, and its warm child, which computes them."""
