from _typeshed import Incomplete
from djl_python.request_io import TextInput, Token
from typing import Any

class Request:
    id: Incomplete
    request_input: TextInput
    input_text: Incomplete
    parameters: Incomplete
    adapter: Incomplete
    last_token: bool
    request_output: Incomplete
    next_token_str: str
    error: str
    error_code: int
    has_said: bool
    def __init__(self, request_input: Any = None, input_text: Any = None, parameters: dict[str, Any] | None = None, details: bool = False, input_ids: list[int] | None = None, adapter: Any = None, output_formatter: Any = None) -> None: ...
    def set_next_token(self, next_token: Token | str, *more: Any, last_token: bool = False, finish_reason: str | None = None, prompt_tokens_details: list[Token] | None = None) -> None: ...
    def get_next_token(self) -> str: ...
    def reset_next_token(self) -> None: ...
    def is_last_token(self) -> bool: ...
    def get_content_type(self) -> str: ...

def takes_tokens(function: Any) -> bool: ...
