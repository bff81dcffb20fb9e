"""What API and workers share: formats, plans, models, errors. Needs pydantic alone."""
