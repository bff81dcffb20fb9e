"""Outbound requests. Users choose the addresses, so each is judged before a connection is made."""
