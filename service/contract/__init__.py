"""What both sides say and read: pydantic and the standard library, nothing else."""
