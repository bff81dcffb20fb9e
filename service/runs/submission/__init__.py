"""Submission of evaluations: checks, baselines, gates, forecasts, and the plan of tasks."""
