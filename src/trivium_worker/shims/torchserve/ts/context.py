"""The context of a handler: its model, and of each request of the batch the headers that came and those to send.

Source: spec sheet `torchserve`, section 8.4. One context lives as long as its worker; what belongs to requests is new
for each batch.
"""

import os
from collections.abc import Callable, Mapping
from typing import Any

from ts.metrics.metric_cache_yaml_impl import MetricsCacheYamlImpl


class Headers(dict[str, Any]):
    """Header fields by name, under the names that the client gave them. They are found in whatever capitals, since
    HTTP's names have none of their own; of several spellings of one the last counts.
    """

    def __init__(self, fields: Mapping[str, Any] | None = None) -> None:
        super().__init__()
        self._spelt: dict[Any, Any] = {}
        for name, value in (fields or {}).items():
            self[name] = value

    def __setitem__(self, name: str, value: Any) -> None:
        kept = self._spelt.setdefault(_folded(name), name)
        super().__setitem__(kept, value)

    def __getitem__(self, name: str) -> Any:
        return super().__getitem__(self._kept(name))

    def __delitem__(self, name: str) -> None:
        super().__delitem__(self._kept(name))
        del self._spelt[_folded(name)]

    def __contains__(self, name: object) -> bool:
        return _folded(name) in self._spelt

    def get(self, name: str, default: Any = None) -> Any:
        """The value, or the default."""
        return super().get(self._kept(name), default)

    def pop(self, name: str, *default: Any) -> Any:
        """The value, which is taken out; the default, if there is one, for a name that is not there."""
        if name not in self:
            return super().pop(name, *default)
        value = self[name]
        del self[name]
        return value

    def popitem(self) -> tuple[str, Any]:
        """Return the last field, which is taken out."""
        name, value = super().popitem()
        del self._spelt[_folded(name)]
        return name, value

    def clear(self) -> None:
        """Take out all of them."""
        super().clear()
        self._spelt.clear()

    def setdefault(self, name: str, default: Any = None) -> Any:
        """The value, or the default, which is put in."""
        if name not in self:
            self[name] = default
        return self[name]

    def update(self, *others: Any, **fields: Any) -> None:
        """Put in other fields, as `dict.update` does."""
        for name, value in dict(*others, **fields).items():
            self[name] = value

    def copy(self) -> "Headers":
        """Return others that are equal."""
        return Headers(self)

    def __reduce__(self) -> tuple[Any, ...]:
        return Headers, (dict(self),)

    def _kept(self, name: Any) -> Any:
        """Return the name as it was spelt; itself, if there is no such."""
        return self._spelt.get(_folded(name), name)


class RequestProcessor:
    """One request of the batch: its headers, and the status and headers of its answer."""

    def __init__(self, request_header: Mapping[str, Any] | None = None) -> None:
        self._status_code = 200
        self._reason_phrase: str | None = None
        self._response_header: dict[str, Any] = {}
        self._request_header = (
            request_header if isinstance(request_header, Headers) else Headers(request_header)
        )

    def get_request_property(self, key: str) -> Any:
        """A header of the request, None where there is none."""
        return self._request_header.get(key)

    def get_request_properties(self) -> Headers:
        """All headers of the request."""
        return self._request_header

    def report_status(self, code: int, reason_phrase: str | None = None) -> None:
        """Answer with this status."""
        self._status_code = code
        self._reason_phrase = reason_phrase

    def get_response_status_code(self) -> int:
        """The status to answer with."""
        return self._status_code

    def get_response_status_phrase(self) -> str | None:
        """Return the phrase that goes with the status."""
        return self._reason_phrase

    def add_response_property(self, key: str, value: Any) -> None:
        """A header of the answer."""
        self._response_header[key] = value

    def get_response_headers(self) -> dict[str, Any]:
        """All headers of the answer."""
        return self._response_header

    def get_response_header(self, key: str) -> Any:
        """A header of the answer, None where there is none."""
        return self._response_header.get(key)


class Context:
    """See spec sheet `torchserve`, section 8.4. `gpu` is the number of the worker's GPU, None on a CPU."""

    def __init__(  # noqa: PLR0913 - the original's parameters
        self,
        model_name: str,
        model_dir: str,
        manifest: dict[str, Any],
        batch_size: int,
        gpu: int | None,
        mms_version: str,
        limit_max_image_pixels: bool = True,
        metrics: Any = None,
        model_yaml_config: dict[str, Any] | None = None,
    ) -> None:
        self.model_name = model_name
        self.manifest = manifest
        self._system_properties = {
            "model_dir": model_dir,
            "gpu_id": gpu,
            "batch_size": batch_size,
            "server_name": "MMS",
            "server_version": mms_version,
            "limit_max_image_pixels": limit_max_image_pixels,
        }
        self.request_ids: dict[int, str] = {}
        self.request_processor: list[RequestProcessor] = [RequestProcessor()]
        self._metrics = MetricsCacheYamlImpl(model_name) if metrics is None else metrics
        self.model_yaml_config = {} if model_yaml_config is None else model_yaml_config
        self.stopping_criteria: list[Callable[[Any], bool]] | None = None
        self.cl_socket: Any = None
        self.header_key_sequence_id = os.environ.get("TS_REQUEST_SEQUENCE_ID", "ts_request_sequence_id")
        self.header_key_sequence_start = os.environ.get(
            "TS_REQUEST_SEQUENCE_START", "ts_request_sequence_start"
        )
        self.header_key_sequence_end = os.environ.get("TS_REQUEST_SEQUENCE_END", "ts_request_sequence_end")

    @property
    def system_properties(self) -> dict[str, Any]:
        """Facts about the worker: `model_dir`, `gpu_id`, `batch_size` and others."""
        return self._system_properties

    @property
    def metrics(self) -> Any:
        """Return where custom metrics go."""
        return self._metrics

    @metrics.setter
    def metrics(self, metrics: Any) -> None:
        self._metrics = metrics

    def get_request_id(self, idx: int = 0) -> str | None:
        """The id of a request."""
        return self.request_ids.get(idx)

    def get_request_header(self, idx: int, key: str) -> Any:
        """A header of a request, None where there is none."""
        return self.request_processor[idx].get_request_property(key)

    def get_all_request_header(self, idx: int) -> Headers:
        """All headers of a request."""
        return self.request_processor[idx].get_request_properties()

    def get_sequence_id(self, idx: int) -> Any:
        """The sequence that a request names, None where it names none."""
        return self.get_request_header(idx, self.header_key_sequence_id)

    def set_response_content_type(self, idx: int, value: str) -> None:
        """The content type of an answer: without it an answer has none."""
        self.set_response_header(idx, "content-type", value)

    def get_response_content_type(self, idx: int) -> str | None:
        """The content type set for an answer."""
        found: str | None = self.get_response_headers(idx).get("content-type")
        return found

    def set_response_header(self, idx: int, key: str, value: str) -> None:
        """A header of an answer."""
        self.request_processor[idx].add_response_property(key, value)

    def get_response_headers(self, idx: int) -> dict[str, Any]:
        """All headers of an answer."""
        return self.request_processor[idx].get_response_headers()

    def set_response_status(self, code: int = 200, phrase: str = "", idx: int = 0) -> None:
        """The status of an answer; its body stays."""
        self.request_processor[idx].report_status(code, reason_phrase=phrase)

    def set_all_response_status(self, code: int = 200, phrase: str = "") -> None:
        """The status of every answer of the batch."""
        for processor in self.request_processor:
            processor.report_status(code, reason_phrase=phrase)

    def get_response_status(self, idx: int) -> tuple[int, str | None]:
        """Status and phrase of an answer."""
        processor = self.request_processor[idx]
        return processor.get_response_status_code(), processor.get_response_status_phrase()


def _folded(name: object) -> Any:
    return name.lower() if isinstance(name, str) else name
