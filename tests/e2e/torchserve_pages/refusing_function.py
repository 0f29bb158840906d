"""A function that answers with an error code of its own."""

from ts.utils.util import PredictionException


def handle(data, context):
    if data is not None:
        raise PredictionException("Some Prediction Error", 513)
