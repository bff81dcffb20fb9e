"""The task that forecasts post-gen scores from pre-gen scores and a history."""

from prescore.models.evaluations import Forecast
from service.contract.results import ForecastHistory, Forecasts, ScoreSummary
from workers.jobs.request import Request, Result, summed
from workers.jobs.toolbox import Toolbox
from workers.progress import Progress


def forecast(request: Request, toolbox: Toolbox, progress: Progress) -> Result:  # noqa: ARG001
    from workers.analysis.forecasting import forecast as forecasting

    history = ForecastHistory.model_validate_json(request.inputs["history"].read_bytes())
    pregen = ScoreSummary.model_validate_json(request.inputs["pregen"].read_bytes()).scores
    found = forecasting.forecast(history.evaluations, history.metrics, pregen)
    forecasts = {name: Forecast.model_validate(each) for name, each in found.items()}
    return summed(Forecasts(forecast=forecasts))
