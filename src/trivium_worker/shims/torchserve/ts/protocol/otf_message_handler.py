"""The older place of `send_intermediate_predict_response`."""

from ts.handler_utils.utils import create_predict_response as create_predict_response
from ts.handler_utils.utils import send_intermediate_predict_response as send_intermediate_predict_response
