"""The work of a forecast: pre-gen scores and a team's history in, post-gen scores out."""

import json

from workers.jobs.request import Request, Result, write_json
from workers.jobs.toolbox import Toolbox
from workers.progress import Progress


def forecast(request: Request, toolbox: Toolbox, progress: Progress) -> Result:  # noqa: ARG001
    from workers.analysis.forecasting import forecast as forecasting

    history = json.loads(request.inputs["history"].read_text("utf-8"))
    pregen = json.loads(request.inputs["pregen"].read_text("utf-8"))["scores"]
    found = forecasting.forecast(history["evaluations"], history["metrics"], pregen)
    summary = {"forecast": found}
    return Result(lambda path: write_json(path, summary), summary)
