"""The catalogue of metrics, and the signatures of scores."""
