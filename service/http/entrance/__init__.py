"""What a request passes before its route: connection, log, origin, body."""
