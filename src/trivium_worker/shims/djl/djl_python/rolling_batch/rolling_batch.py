"""The base class of rolling batches that a handler forms by itself: it keeps the requests that have not ended.

Source: spec sheet `djl`, section 11.3: both forms of it, with requests, and with texts and their parameters.
"""

import functools
import logging
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any

from djl_python.request import Request
from djl_python.request_io import Token

FINISH_REASON_MAPPER = ["length", "eos_token", "stop_sequence"]


def filter_unused_generation_params(
    parameters: dict[str, Any], allowed_params: set[str], backend: str, remove_unused_params: bool = False
) -> dict[str, Any]:
    """Log which parameters a backend does not know, and leave them out if that is wanted."""
    unknown = sorted(set(parameters) - set(allowed_params))
    if unknown:
        known = ", ".join(sorted(allowed_params))
        logging.warning("%s does not know the parameters %s; it knows %s", backend, ", ".join(unknown), known)
    if remove_unused_params:
        for name in unknown:
            del parameters[name]
    return parameters


def stop_on_any_exception(func: Callable[..., Any]) -> Callable[..., Any]:
    """Let what `inference` raises be the last token of every active request, and begin anew."""

    @functools.wraps(func)
    def guarded(self: "RollingBatch", *args: Any, **kwargs: Any) -> Any:
        try:
            return func(self, *args, **kwargs)
        except Exception as error:
            logging.exception("the rolling batch failed")
            for request in self.active_requests:
                token = Token(-1, "", -1, True, str(error) or type(error).__name__)
                request.set_next_token(token, last_token=True, finish_reason="error")
            results = self.postprocess_results()
            self.reset()
            return results

    return guarded


class RollingBatch(ABC):
    """Keeps the active requests in the order in which the handler gets them."""

    def __init__(self, configs: Any = None, **kwargs: Any) -> None:
        self.configs = configs if configs is not None else kwargs
        self.active_requests: list[Request] = []
        self.pending_requests: list[Request] = []
        self._next_id = 0

    def reset(self) -> None:
        """Forget all requests."""
        self.active_requests = []
        self.pending_requests = []
        self._next_id = 0

    def get_tokenizer(self) -> Any:
        """Raise: a subclass that has one returns it."""
        raise RuntimeError("get_tokenizer function not supported")

    @abstractmethod
    def inference(self, *args: Any, **kwargs: Any) -> list[dict[str, Any]]:
        """Compute one step for all requests, and return what `postprocess_results` does."""

    @abstractmethod
    def preprocess_requests(self, requests: list[Request]) -> Any:
        """Turn requests into what the backend takes."""

    def get_new_requests(
        self,
        requests: Sequence[Any],
        parameters: Sequence[dict[str, Any]] | None = None,
        batch_size: int | None = None,
        adapters: Sequence[Any] | None = None,
    ) -> list[Request]:
        """Add those that are behind the active ones, and return them. With `parameters`, requests are texts."""
        known = len(self.active_requests)
        for index in range(known, len(requests) if batch_size is None else batch_size):
            given = requests[index]
            if parameters is not None:
                options = dict(parameters[index])
                details = options.pop("details", False)
                adapter = adapters[index] if adapters is not None else None
                given = Request(self._next_id, given, options, details=details, adapter=adapter)
                self._next_id += 1
            self.active_requests.append(given)
        return self.active_requests[known:]

    def postprocess_results(self) -> list[dict[str, Any]]:
        """Return what each active request has to say since the last step, and leave out those that have ended."""
        results = []
        for request in self.active_requests:
            told = {
                "data": request.get_next_token(),
                "last": request.is_last_token(),
                "content_type": request.get_content_type(),
            }
            if request.error_code and not request.has_said:
                told["code"], told["error"] = request.error_code, request.error
            request.reset_next_token()
            results.append(told)
        self.active_requests = [request for request in self.active_requests if not request.is_last_token()]
        return results
