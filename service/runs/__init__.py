"""A file for each kind of run, and what runs are made of and searched by; never HTTP."""
