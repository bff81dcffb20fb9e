"""The client's use of HTTP: transport, retries, uploads, downloads, polls and events."""
