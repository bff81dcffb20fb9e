"""Captions that are wrong by construction: what a metric makes of them, beside what people say."""
