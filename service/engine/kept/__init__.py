"""What is kept of tasks and runs that have ended, and of workers, and how it is found."""
