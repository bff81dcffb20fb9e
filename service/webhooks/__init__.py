"""Webhooks: registered by teams, sent when runs end."""
