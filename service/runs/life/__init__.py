"""What becomes of runs and uploads later: changed labels and notes, deletion, retention."""
