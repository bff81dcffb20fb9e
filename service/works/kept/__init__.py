"""What is kept of works and runs that have ended, and of workers, and how it is found."""
