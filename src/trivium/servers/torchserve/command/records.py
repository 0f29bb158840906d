"""Records of a TorchServe's work: its metrics, its access log, and the sentences about workers that others look for.

Decides in whose words what happens is told. Source: spec sheet `torchserve`, sections 1, 6 and 8.6.
"""

import logging
import socket
import time
from collections.abc import Mapping

from trivium.frontends.access_log import AccessLine
from trivium.servers.torchserve.command.logs import (
    THREAD_NAME,
    TorchServeLogs,
    access_text,
    worker_id,
    worker_name,
)
from trivium.servers.torchserve.words.meter import HOST, MeterSettings, TorchServeMeter
from trivium.types.errors import Code
from trivium.types.operations import Infer
from trivium.types.recording import InstanceName, WorkerEnd

_workers = logging.getLogger("org.pytorch.serve.wlm.WorkerThread")
_workers.setLevel(logging.DEBUG)  # the state of a worker is told at that level
_DEFAULT = "default"
_GRPC, _GRPC_ORIGIN = "gRPC", "GRPC"
"""How a line of the access log and a request's origin name that wire."""
_STARTED, _LOADED, _STOPPED, _SCALED_DOWN = (
    "WORKER_STARTED",
    "WORKER_MODEL_LOADED",
    "WORKER_STOPPED",
    "WORKER_SCALED_DOWN",
)
_NO_STATE = "null"


def make_meter(settings: MeterSettings, logs: TorchServeLogs) -> TorchServeMeter:
    """Make the meter of a server, whose lines go into its logs."""
    return TorchServeMeter(
        settings, socket.gethostname(), time.time, logs.server_metrics.add, logs.model_metrics.add
    )


class AnswerRecords:
    """Implements `AnswerLog`: a line in the access log for each request; of those over HTTP a count by status."""

    is_exact = True
    takes_facts = False

    def __init__(self, meter: TorchServeMeter, logs: TorchServeLogs) -> None:
        self._meter = meter
        self._logs = logs

    def add(self, line: AccessLine) -> None:
        """See `AnswerLog`."""
        self._logs.access.add(access_text(line), line.time)
        if line.method != _GRPC:
            self._meter.answered(line.status)

    def flush(self) -> None:
        """See `AnswerLog`: the logs are written by a clock of their own."""

    def close(self) -> None:
        """See `AnswerLog`: listeners share it, and it outlives them."""


class TorchServeRecorder:
    """Implements `ServingRecorder`. Times are milliseconds and microseconds here, by the metric."""

    def __init__(self, meter: TorchServeMeter) -> None:
        self._meter = meter
        self._states: dict[InstanceName, str] = {}
        self._recovering: dict[tuple[str, str], float] = {}
        """Versions whose workers have ended by themselves, and since when no new one has loaded."""
        self._replacing: dict[InstanceName, float] = {}
        """Workers that are replaced, but whose end has not been heard of, and after how many seconds that is."""
        self._late: dict[str, int] = {}
        """How often in a row a model did not answer in time."""

    def answered(self, request: Infer, waited: float, spent: float) -> None:
        """See `ServingRecorder`. As in the original the latencies are of requests over HTTP alone."""
        self._count(request)
        place = request.model, request.version or _DEFAULT
        update = self._meter.update
        if request.origin is None or request.origin.wire != _GRPC_ORIGIN:
            update("ts_inference_latency_microseconds", place, round(spent * 1e6, 3))
            update("ts_queue_latency_microseconds", place, round(waited * 1e6, 3))
        update("QueueTime", (HOST,), float(int(waited * 1e3)))
        if self._late:
            self._late.pop(request.model, None)

    def failed(self, request: Infer, code: Code, spent: float) -> None:
        """See `ServingRecorder`."""
        self._count(request)

    def _count(self, request: Infer) -> None:
        place = request.model, request.version or _DEFAULT
        self._meter.update("ts_inference_requests_total", place, 1.0)

    def ran(self, lingered: float) -> None:
        """See `ServingRecorder`."""
        self._meter.update("WorkerThreadTime", (HOST,), float(int(lingered * 1e3)))

    def starting(self, instance: InstanceName) -> None:
        """See `ServingRecorder`."""
        self._become(instance, _STARTED)

    def opened(self, instance: InstanceName, seconds: float) -> None:
        """See `ServingRecorder`."""
        self._become(instance, _LOADED)
        self._meter.update("WorkerLoadTime", (worker_name(instance), HOST), float(round(seconds * 1e3)))
        if self._recovering.pop((instance.model, instance.version), None) is not None:
            self._say(logging.INFO, instance, "Auto recovery succeeded, reset recoveryStartTS")

    def ended(self, instance: InstanceName, why: WorkerEnd, post_mortem: str) -> None:
        """See `ServingRecorder`. The post-mortem itself is a line of the log already."""
        if why is WorkerEnd.LATE:
            times = self._late[instance.model] = self._late.get(instance.model, 0) + 1
            self._say(logging.ERROR, instance, f"Number or consecutive unsuccessful inference {times}")
            words = "Backend worker error: Backend worker did not respond in given time"
            self._say(logging.ERROR, instance, words)
        state = self._states.get(instance, _NO_STATE)
        self._say(logging.INFO, instance, f"{worker_id(instance)} Worker disconnected. {state}")
        self._become(instance, _SCALED_DOWN if why is WorkerEnd.ASKED else _STOPPED)
        self._states.pop(instance, None)
        self._meter.forget("WorkerLoadTime", (worker_name(instance), HOST))
        place = instance.model, instance.version
        seconds = self._replacing.pop(instance, None)
        if why is WorkerEnd.ASKED:
            self._recovering.pop(place, None)
            return
        if place in self._recovering:
            self._say(logging.WARNING, instance, "Auto recovery failed again")
        else:
            since = self._recovering[place] = time.time()
            self._say(logging.INFO, instance, f"Auto recovery start timestamp: {since * 1e3:.0f}")
        if seconds is not None:
            self._say_retry(instance, seconds)

    def replacing(self, instance: InstanceName, seconds: float) -> None:
        """See `ServingRecorder`. The line comes behind those of the worker's end."""
        if instance in self._states:
            self._replacing[instance] = seconds
        else:
            self._say_retry(instance, seconds)

    def _say_retry(self, instance: InstanceName, seconds: float) -> None:
        self._say(logging.INFO, instance, f"Retry worker: {worker_id(instance)} in {seconds:.0f} seconds.")

    def measured(self, model: str, step: Mapping[str, object]) -> None:
        """See `ServingRecorder`: the meter has all of them."""
        self._meter.measured(step)

    def _become(self, instance: InstanceName, state: str) -> None:
        before = self._states.get(instance, _NO_STATE)
        self._states[instance] = state
        text = f"{worker_name(instance)} State change {before} -> {state}"
        self._say(logging.DEBUG, instance, text)

    def _say(self, level: int, instance: InstanceName, text: str) -> None:
        _workers.log(level, "%s", text, extra={THREAD_NAME: worker_name(instance)})
