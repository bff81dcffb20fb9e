"""Operation: commands, `prescore serve`, the janitor, the doctor, the demo."""
