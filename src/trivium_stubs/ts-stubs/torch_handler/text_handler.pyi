from _typeshed import Incomplete
from abc import ABC
from ts.torch_handler.base_handler import BaseHandler
from typing import Any

VOCABULARY: str

class TextHandler(BaseHandler, ABC):
    source_vocab: Any
    tokenizer: Incomplete
    input_text: str | None
    lig: Any
    def __init__(self) -> None: ...
    initialized: bool
    def initialize(self, context: Any) -> None: ...
    def get_source_vocab_path(self, ctx: Any) -> str: ...
    def get_word_token(self, input_tokens: list[str]) -> list[str]: ...
    def summarize_attributions(self, attributions: Any) -> Any: ...
