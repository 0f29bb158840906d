from collections.abc import Callable
from djl_python.request_io import RequestOutput as RequestOutput, Sequence as Sequence, TextGenerationOutput as TextGenerationOutput, TextInput as TextInput, Token as Token
from typing import Any, TypeVar

Function = TypeVar('Function', bound=Callable[..., Any])

def output_formatter(function: Function) -> Function: ...
def __getattr__(name: str) -> Any: ...
