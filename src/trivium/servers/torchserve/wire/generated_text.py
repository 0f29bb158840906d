"""Writes what a model generates as the LLM-API does: its text, and behind the last piece the model's end token.

Source: spec sheet `torchserve`, section 10.
"""

from collections.abc import Mapping

from trivium.codecs.generation import generated_of
from trivium.servers.torchserve.words.language_model import END_OF_STREAM
from trivium.types.operations import ResponsePart


def end_of(parameters: Mapping[str, str]) -> bytes:
    """Return what the answers of a model that has these parameters end with."""
    return parameters.get("end_of_stream_token", END_OF_STREAM).encode()


def text_of(part: ResponsePart, end: bytes) -> bytes:
    """Return the text of a part without an error, with the `end` behind the last one. Raises why it cannot go on."""
    text = b"".join([choice.text.encode() for choice in generated_of(part.payload).choices])
    return text + end if part.final else text
