"""Columns of any model, from its own logits: with numpy alone."""
