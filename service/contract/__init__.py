"""Contract of the API and the workers: formats, plans, models, errors. Needs pydantic alone."""
