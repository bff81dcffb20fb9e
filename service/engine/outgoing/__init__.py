"""What the service sends to others, or fetches from them, by itself: the one client that does so,
and webhooks. Users choose the addresses, so each is judged before a connection is made.
"""
