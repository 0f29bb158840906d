"""A class that answers with an error code of its own."""

from ts.torch_handler.base_handler import BaseHandler
from ts.utils.util import PredictionException


class ModelHandler(BaseHandler):
    def initialize(self, context):
        self.initialized = True

    def handle(self, data, context):
        raise PredictionException("Some Prediction Error", 513)
