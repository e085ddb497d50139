"""Pictures of forecasts."""

import numpy as np

from weft.figures.records import ForecastRecord
from weft.figures.series import forecast_figure


def test_the_days_of_a_forecast_stand_equally_apart_over_the_end_of_a_month() -> None:
    hours = np.datetime64("2017-01-28T00:00:00") + np.arange(432) * np.timedelta64(1, "h")
    waves = np.sin(np.arange(432) / 4)
    one = ForecastRecord("wave", hours[:336], waves[:336], hours[336:], waves[336:], None, ())
    marks = forecast_figure(one).axes[0].get_xticks()
    assert len(marks) > 4 and np.allclose(np.diff(marks), np.diff(marks)[0])
