"""What can be seen of the engine: the works that queues have, the workers that there are."""
