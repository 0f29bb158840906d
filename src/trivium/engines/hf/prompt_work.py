"""Opens a model's tokenizer from its folder: in the worker, and again in the helper process that reads texts.

Both open the same files by the same arguments, and a fingerprint says whether both have the same tokenizer.
"""

import os
import sys
from pathlib import Path
from typing import Any

import msgspec

from trivium.codecs.tokenizer_fingerprint import tokenizer_fingerprint
from trivium.engines.hf.folder_code import FolderCode
from trivium.engines.hf.gguf_model import open_gguf
from trivium.engines.hf.prompts import PromptTokenizer, PromptWork
from trivium.engines.hf.requests import GenerationLimits
from trivium.engines.hf.token_length_policy import TokenLength
from trivium.machine.helper_process import Unopened, WorkOpener


class TokenizerSource(msgspec.Struct, frozen=True):
    """Says where a tokenizer is: a folder, or the GGUF file of that name in it; `trusts_code`: may code of it run?
    `is_ours` where our own reader opens the file, which takes no PyTorch.
    """

    folder: str
    gguf: str
    trusts_code: bool
    is_ours: bool = False

    def open(self) -> Any:
        """Return the tokenizer. Raises whatever the library, or code of the folder, raises."""
        if self.is_ours and (known := open_gguf(Path(self.folder, self.gguf))) is not None:
            return known.tokenizer()
        import transformers

        extra = {"gguf_file": self.gguf} if self.gguf else {}
        code = FolderCode("", self.trusts_code)
        return transformers.AutoTokenizer.from_pretrained(self.folder, **code.of_library(), **extra)


class PromptWorkArguments(msgspec.Struct, frozen=True):
    """Holds what a `PromptWork` is opened with: a tokenizer, by which fingerprint it is known, and its limits."""

    source: TokenizerSource
    fingerprint: str
    limits: GenerationLimits
    length: TokenLength


def fingerprint(tokenizer: Any) -> str:
    """Return what tells a tokenizer, as it was opened, from one that makes other tokens or other texts of chats."""
    backend = getattr(tokenizer, "backend_tokenizer", None)
    told = (type(tokenizer).__qualname__, tokenizer.special_tokens_map, tokenizer.chat_template)
    if backend is None:
        return tokenizer_fingerprint("{}", {}, *told, sorted(map(repr, tokenizer.get_vocab().items())))
    return tokenizer_fingerprint(backend.to_str(), backend.get_vocab(), *told)


def prompt_work(
    source: TokenizerSource, opened: Any, limits: GenerationLimits, length: TokenLength
) -> WorkOpener:
    """Return what opens a `PromptWork` of a tokenizer elsewhere; `opened` is the one that the worker has."""
    told = PromptWorkArguments(source, fingerprint(opened), limits, length)
    return WorkOpener(f"{__name__}:{open_prompt_work.__name__}", msgspec.json.encode(told).decode())


def open_prompt_work(arguments: str) -> PromptWork:
    """Return the work of a helper process from the JSON of `PromptWorkArguments`."""
    told = msgspec.json.decode(arguments, type=PromptWorkArguments)
    source = told.source
    if not source.trusts_code and (source.is_ours or not source.gguf):
        # PyTorch is seconds and a quarter of a gigabyte, and tokenizers need none. The library asks whether it is
        # there; but to read the head of a GGUF file it imports it unasked, and so may code of the folder.
        sys.modules["torch"] = None  # type: ignore[assignment]
        os.environ["TRANSFORMERS_NO_ADVISORY_WARNINGS"] = "1"
    try:
        tokenizer = source.open()
    except (
        BaseException
    ) as error:  # code of the folder may ask for the exit, and a panic of Rust is no Exception
        raise Unopened(
            f"the tokenizer in its folder can no longer be opened ({type(error).__name__})"
        ) from error
    if fingerprint(tokenizer) != told.fingerprint:
        raise Unopened(
            "the tokenizer in its folder is another one than that which was loaded. Load the model again"
        )
    return PromptWork(PromptTokenizer(tokenizer, told.limits, told.length))
