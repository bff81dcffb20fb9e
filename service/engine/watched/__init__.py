"""What can be seen of the engine: the tasks that queues have, the workers that there are."""
