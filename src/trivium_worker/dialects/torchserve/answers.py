"""Turns what a TorchServe handler returns or raises into outcomes.

Source: spec sheet `torchserve`, section 4.3: bytes, text, a torch tensor, else JSON; no content type but the handler's
own. A failure begins with the original's text, which the wire may keep to, and says more behind it.
"""

import io
import json
import logging
import sys
from typing import Any

from trivium_worker.runtime.faults import in_brackets
from trivium_worker.runtime.traces import place_of, print_trace
from trivium_worker.wire.values import Failure, Part, Raw, frameless

FAILED = 503
OUT_OF_MEMORY = 507


def body_of(element: Any) -> bytes:
    """The bytes of one element. Failure where it can be written in none of the ways."""
    if isinstance(element, (bytes, bytearray, memoryview)):
        return bytes(element)
    try:
        if isinstance(element, str):
            return element.encode("utf-8")
        torch = sys.modules.get("torch")
        if torch is not None and isinstance(element, torch.Tensor):
            buffer = io.BytesIO()
            torch.save(element, buffer)
            return buffer.getvalue()
        return json.dumps(element, indent=2).encode("utf-8")
    except (TypeError, ValueError, RecursionError) as error:
        raise Failure(
            (
                "Unsupported model output data type. The handler returned a "
                f"{type(element).__name__}: {error}. Return bytes, text, a torch tensor or what JSON "
                "can write."
            ),
            status=FAILED,
        ) from error


def answer_of(element: Any, processor: Any) -> Raw:
    """One element with the status and headers that the handler set for its request. Failure where they are none."""
    headers: dict[str, str] = {
        str(name): str(value) for name, value in processor.get_response_headers().items() if value is not None
    }
    code, phrase = processor.get_response_status_code(), processor.get_response_status_phrase()
    if isinstance(code, bool) or not isinstance(code, int):
        raise Failure(
            f"Prediction failed: the handler set the response status {code!r}, which is no number.",
            status=FAILED,
        )
    return Raw([Part(body_of(element))], headers, status=code, reason=str(phrase or ""))


def elements_of(result: Any, count: int) -> list[Any]:
    """The elements of a result, one per request. Failure where it is no list of that length."""
    if not isinstance(result, list):
        raise Failure(
            (
                f"Invalid model predict output. The handler returned a {type(result).__name__}; it "
                "must return a list with one element for each request."
            ),
            status=FAILED,
        )
    if len(result) != count:
        raise Failure(
            (
                f"number of batch response mismatched: the handler returned {len(result)} elements "
                f"for {count} requests; it must return one for each, in order."
            ),
            status=FAILED,
        )
    return result


def failure_of(error: Exception) -> Failure:
    """Return what a handler raised, as every request of its batch gets it; the traceback goes to the log, of what was
    found wrong with its answer the sentence: clients may get the beginning alone.
    """
    if isinstance(error, Failure):
        logging.warning("%s", error.message)
        return frameless(error)
    print_trace(error)
    from ts.utils.util import PredictionException

    if isinstance(error, PredictionException):
        return Failure(error.message, status=_status(error.error_code))
    words = f"{type(error).__name__}: {error}{in_brackets(place_of(error))}"
    if isinstance(error, MemoryError) or "CUDA" in str(error):
        return Failure(f"Out of resources: {words}", "out of memory", OUT_OF_MEMORY)
    return Failure(f"Prediction failed: {words}", status=FAILED)


def _status(code: Any) -> int:
    if code == 413:  # to a client that would mean its own request
        return OUT_OF_MEMORY
    return code if isinstance(code, int) and 400 <= code <= 599 else 500
