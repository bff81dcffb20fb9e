"""Probes of metrics on a dataset's references (Caglayan, Madhyastha and Specia 2020)."""
