"""Uncertainty of scores: intervals, comparisons, estimates from parts, forecasts."""
