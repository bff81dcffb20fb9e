"""What is kept of works and runs that have ended, and how it is found."""
