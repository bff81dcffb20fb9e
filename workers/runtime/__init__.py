"""A worker process: it leases works, and a child that stays warm runs them."""
