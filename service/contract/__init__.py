"""The language that the front door and the engine room both speak; needs pydantic alone."""
