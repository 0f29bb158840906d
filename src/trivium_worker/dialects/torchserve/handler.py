"""The TorchServe dialect: a handler gets a list of requests and a context, and returns a list as long.

Source: spec sheet `torchserve`, sections 4.2 to 4.4 and 8. Requests, results and entry points have modules of their
own; here they are put together for a batch.
"""

import logging
import platform
import sys
import time
import uuid
from typing import Any

from trivium_worker.dialects.torchserve.answers import answer_of, elements_of, failure_of
from trivium_worker.dialects.torchserve.entry import entry_point
from trivium_worker.dialects.torchserve.envelopes import V2, enveloped
from trivium_worker.dialects.torchserve.rows import row_of
from trivium_worker.dialects.torchserve.tensors import tensor_of
from trivium_worker.dialects.torchserve.yaml_values import from_json
from trivium_worker.runtime.adapter import Adapter, Host, Setup
from trivium_worker.wire.values import Failure, Item, Outcome, Raw

_TRACE = "traceparent"


class TorchServeAdapter(Adapter):
    """One handler, loaded. Its context is the same for all batches, but for what belongs to requests."""

    def __init__(self, setup: Setup, host: Host) -> None:
        from ts.context import Context, Headers, RequestProcessor
        from ts.metrics.metric_cache_yaml_impl import DECLARED, MetricsCacheYamlImpl
        from ts.metrics.sink import Sink

        # As in the original: what a handler logs is a line of its worker's output.
        logging.basicConfig(stream=sys.stdout, format="%(message)s", level=logging.INFO)
        Sink.measure = host.measure
        settings = setup.settings
        self._is_timed = "metrics" in settings
        if self._is_timed:  # what stands for the original's worker says what that says
            logging.info("Torch worker started.")
            logging.info("Python runtime: %s", platform.python_version())
            logging.info("model_name: %s, batchSize: %d", setup.model, setup.max_rows)
        metrics = MetricsCacheYamlImpl(setup.model, str(uuid.uuid4()), settings.get("metrics", DECLARED))
        self._headers, self._processor = Headers, RequestProcessor
        self._decodes: bool = settings["decode_input_request"]
        self._items: list[Item] = []
        self.context = Context(
            setup.model,
            setup.root,
            settings["manifest"],
            setup.max_rows,
            setup.device_id if setup.device == "gpu" else None,
            settings["server_version"],
            settings["limit_max_image_pixels"],
            metrics,
            model_yaml_config=from_json(settings["model_yaml_config"]),
        )
        self.context.cl_socket = self
        try:
            entry = entry_point(setup.root, setup.entry, setup.function, self.context, self.loop)
        except (MemoryError, RuntimeError) as error:
            if isinstance(error, MemoryError) or "CUDA" in str(error):
                raise Failure(f"System out of memory: {error}", "out of memory") from error
            raise
        self.entry = enveloped(entry, settings["service_envelope"])
        self._speaks_v2 = settings["service_envelope"] == V2

    def run(self, items: list[Item]) -> list[Outcome]:
        """Every request of the batch fails by what the handler raises; SystemExit ends the worker."""
        rows: list[dict[str, Any]] = []
        processors = []
        for item in items:
            row, headers = row_of(item, self._decodes, self._speaks_v2)
            rows.append(row)
            processors.append(self.processor_of(item, headers))
        self._show([id_of(item) for item in items], processors)
        self._items = items
        try:
            elements = elements_of(self._called(rows), len(items))
            self._check_criteria(elements)
            return [
                self._outcome_of(item, element, own)
                for item, element, own in zip(items, elements, self.context.request_processor, strict=False)
            ]
        except Exception as error:
            failure = failure_of(error)
            return [failure] * len(items)
        finally:
            self._items = []

    def send_parts(self, ret: Any, req_id_map: dict[int, str], message: str, code: int) -> None:
        """`ts.handler_utils.utils.send_intermediate_predict_response`: a part of each request's answer, now."""
        items, processors = self._items, self.context.request_processor
        if items and isinstance(ret, list):
            ret = ret[: len(items)]  # the original counts a result's only, and leaves the rest over
        elements = elements_of(ret, len(items))
        for item, element, processor in zip(items, elements, processors, strict=False):
            if code == 200:
                self._part(item, answer_of(element, processor))
            else:
                item.send(Failure(message, status=code if 400 <= code <= 599 else 500))

    def close(self) -> None:
        """Do nothing: handlers of this dialect have no method for the end."""

    def processor_of(self, item: Item, headers: dict[str, Any]) -> Any:
        """Return what the context has of a request. Its place in a sequence is a header, whoever said it: the server
        may have made the id up, and other wires have fields of their own for that.
        """
        if item.context:  # of its own span, in place of its client's
            of_client = [name for name in headers if name.lower() == _TRACE]
            headers = {**headers, **dict.fromkeys(of_client or [_TRACE], item.context)}
        found = self._headers(headers)
        if item.sequence is not None:
            identity, starts, ends = item.sequence
            context, yes = self.context, "true"
            said = [(context.header_key_sequence_id, str(identity))]
            said += [(context.header_key_sequence_start, yes)] if starts else []
            said += [(context.header_key_sequence_end, yes)] if ends else []
            for name, value in said:
                known = found.get(name)
                if not (known and isinstance(known, str)):  # an input of that name has a content type there
                    found[name] = value
        return self._processor(found)

    def _show(self, ids: list[str], processors: list[Any]) -> None:
        """Let the context tell of the requests that the next call is about."""
        context = self.context
        context.request_processor = processors
        context.request_ids = dict(enumerate(ids))
        context.metrics.request_ids = context.request_ids
        context.stopping_criteria = None

    def _called(self, rows: list[dict[str, Any]]) -> Any:
        """Call the handler, and say how long that took, where the server wants to know."""
        if not self._is_timed:
            return self.entry(rows, self.context)
        began = time.perf_counter()
        result = self.entry(rows, self.context)
        self.context.metrics.add_time("PredictionTime", round((time.perf_counter() - began) * 1000, 2))
        return result

    def _outcome_of(self, item: Item, element: Any, processor: Any) -> Outcome:
        """Return an element as its client is to have it: of an envelope of v2, tensors to whoever has sent tensors."""
        if (
            self._speaks_v2
            and not isinstance(item.payload, Raw)
            and processor.get_response_status_code() < 400
        ):
            return [tensor_of(output) for output in element["outputs"]]
        return answer_of(element, processor)

    def _part(self, item: Item, answer: Any) -> None:
        item.send(answer)

    def _check_criteria(self, elements: list[Any]) -> None:
        """A handler that goes on by itself is continuous batching; one whose answers are all final needs none."""
        criteria = self.context.stopping_criteria
        if criteria and not all(ends_request(criteria[i], element) for i, element in enumerate(elements)):
            raise Failure(
                "The handler set context.stopping_criteria to be called again for the same requests: that is "
                "continuous batching. Set continuousBatching: true in model-config.yaml, or send parts by "
                "send_intermediate_predict_response.",
                "unsupported",
            )


def ends_request(criterion: Any, element: Any) -> bool:
    """Return whether an element ends its request: a criterion says yes, or None, where it is no stream at all."""
    verdict = criterion(element)
    return verdict is None or bool(verdict)


def id_of(item: Item) -> str:
    """Return the id of a request as the handler sees it."""
    return item.request_id or str(uuid.uuid4())
