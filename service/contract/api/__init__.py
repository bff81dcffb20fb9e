"""Requests and answers: what stands in openapi.json."""
