"""What the service sends by itself: webhooks, and which URLs it may ask."""
