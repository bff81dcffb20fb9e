"""What an operator starts: the commands, a service on one machine, the janitor, the doctor."""
