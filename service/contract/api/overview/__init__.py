"""What a page shows of all runs: labels in use, queues, workers."""
