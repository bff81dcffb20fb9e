"""What the client asks of the service: a generator of steps for each request."""
