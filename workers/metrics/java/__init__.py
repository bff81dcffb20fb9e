"""The metrics that are written in Java, each in a child process of its own."""
