from _typeshed import Incomplete
from djl_python.custom_formatter_handling import CustomFormatterHandler
from djl_python.inputs import Input
from djl_python.outputs import Output
from trivium_worker import pickles as pickles
from trivium_worker.estimators import FORMATS as FORMATS, OWN_LOADING as OWN_LOADING, TRUST as TRUST, TYPES as TYPES, files_of as files_of, trusted_types as trusted_types
from typing import Any

class SklearnHandler(CustomFormatterHandler):
    model: Any
    initialized: bool
    init_properties: dict[str, str]
    def __init__(self) -> None: ...
    def initialize(self, properties: dict[str, str]) -> None: ...
    def inference(self, inputs: Input) -> Output: ...

def opened(folder: str, properties: dict[str, str]) -> Any: ...

service: Incomplete

def handle(inputs: Input) -> Output | None: ...
