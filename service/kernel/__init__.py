"""Linux's kernel: the mechanisms by which a process and all that it starts are confined."""
