"""The words in which a TorchServe tells of requests and workers."""

import logging

import pytest

from trivium.servers.torchserve.command.logs import THREAD_NAME
from trivium.servers.torchserve.command.records import TorchServeRecorder
from trivium.servers.torchserve.words.meter import MeterSettings, MetricsMode, TorchServeMeter
from trivium.types.errors import Code
from trivium.types.operations import Infer
from trivium.types.payload import Raw
from trivium.types.recording import InstanceName, WorkerEnd
from trivium.types.tracing import RequestOrigin

FIRST, SECOND = (InstanceName("m", "2", number) for number in (1, 2))


@pytest.fixture
def meter() -> TorchServeMeter:
    return TorchServeMeter(MeterSettings(mode=MetricsMode.PROMETHEUS), "h", lambda: 0.0, print, print)


def values(meter: TorchServeMeter) -> dict[tuple[str, ...], float]:
    return {
        (metric.name, *labels[:-1]): one.value
        for metric, series in meter.kept.items()
        for labels, one in series.items()
    }


def said(caplog: pytest.LogCaptureFixture) -> list[str]:
    found = [record.getMessage() for record in caplog.records]
    caplog.clear()
    return found


def test_requests_by_whether_they_name_a_version(meter: TorchServeMeter) -> None:
    recorder = TorchServeRecorder(meter)
    recorder.answered(Infer("m", Raw(())), 0.0125, 0.5)
    recorder.answered(Infer("m", Raw(()), "2"), 0.25, 1)
    recorder.answered(Infer("m", Raw(()), "2"), 0.0, 1)
    recorder.failed(Infer("m", Raw(())), Code.MODEL_FAILED, 3)
    recorder.ran(0.0029)
    assert values(meter) == {
        ("ts_inference_requests_total", "m", "default"): 2,
        ("ts_inference_requests_total", "m", "2"): 2,
        ("ts_inference_latency_microseconds", "m", "default"): 500_000,
        ("ts_inference_latency_microseconds", "m", "2"): 2_000_000,
        ("ts_queue_latency_microseconds", "m", "default"): 12_500,
        ("ts_queue_latency_microseconds", "m", "2"): 250_000,
        ("QueueTime", "Host"): 0,
        ("WorkerThreadTime", "Host"): 2,
    }


def test_latencies_are_of_requests_over_http_alone(meter: TorchServeMeter) -> None:
    recorder = TorchServeRecorder(meter)
    recorder.answered(Infer("m", Raw(()), origin=RequestOrigin("GRPC", 0.0, 0.0)), 0.25, 0.5)
    recorder.answered(Infer("m", Raw(()), origin=RequestOrigin("HTTP", 0.0, 0.0)), 0.125, 1)
    assert values(meter) == {
        ("ts_inference_requests_total", "m", "default"): 2,
        ("ts_inference_latency_microseconds", "m", "default"): 1_000_000,
        ("ts_queue_latency_microseconds", "m", "default"): 125_000,
        ("QueueTime", "Host"): 125,
    }


def test_a_worker_that_comes_and_goes_as_it_should(
    meter: TorchServeMeter, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    recorder = TorchServeRecorder(meter)
    recorder.starting(FIRST)
    recorder.opened(FIRST, 1.2345)
    assert {getattr(record, THREAD_NAME) for record in caplog.records} == {"W-9001-m_2"}
    assert values(meter) == {("WorkerLoadTime", "W-9001-m_2", "Host"): 1234}
    recorder.ended(FIRST, WorkerEnd.ASKED, "")
    assert values(meter) == {}
    assert said(caplog) == [
        "W-9001-m_2 State change null -> WORKER_STARTED",
        "W-9001-m_2 State change WORKER_STARTED -> WORKER_MODEL_LOADED",
        "9001 Worker disconnected. WORKER_MODEL_LOADED",
        "W-9001-m_2 State change WORKER_MODEL_LOADED -> WORKER_SCALED_DOWN",
    ]
    recorder.starting(SECOND)
    assert said(caplog) == ["W-9002-m_2 State change null -> WORKER_STARTED"]


def test_a_worker_that_dies_and_the_next_one(
    meter: TorchServeMeter, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    logging.getLogger("org.pytorch.serve.wlm.WorkerThread").setLevel(logging.INFO)
    try:
        recorder = TorchServeRecorder(meter)
        recorder.starting(FIRST)
        recorder.replacing(FIRST, 0.0)
        assert said(caplog) == []
        recorder.ended(FIRST, WorkerEnd.DIED, "it fell")
        first, since, retry = said(caplog)
        assert first == "9001 Worker disconnected. WORKER_STARTED"
        assert since.startswith("Auto recovery start timestamp: ")
        assert retry == "Retry worker: 9001 in 0 seconds."
        recorder.starting(SECOND)
        recorder.ended(SECOND, WorkerEnd.LATE, "it was late")
        assert said(caplog) == [
            "Number or consecutive unsuccessful inference 1",
            "Backend worker error: Backend worker did not respond in given time",
            "9002 Worker disconnected. WORKER_STARTED",
            "Auto recovery failed again",
        ]
        recorder.replacing(SECOND, 1.96)
        assert said(caplog) == ["Retry worker: 9002 in 2 seconds."]
        recorder.ended(SECOND, WorkerEnd.LATE, "")
        assert "Number or consecutive unsuccessful inference 2" in said(caplog)
        recorder.answered(Infer("m", Raw(())), 0, 0)
        recorder.starting(FIRST)
        recorder.opened(FIRST, 1)
        assert said(caplog)[-1] == "Auto recovery succeeded, reset recoveryStartTS"
        recorder.ended(FIRST, WorkerEnd.LATE, "")
        assert "Number or consecutive unsuccessful inference 1" in said(caplog)
    finally:
        logging.getLogger("org.pytorch.serve.wlm.WorkerThread").setLevel(logging.DEBUG)


def test_what_the_meter_refuses_of_a_handler_is_refused(meter: TorchServeMeter) -> None:
    recorder = TorchServeRecorder(meter)
    labels = {"ModelName": "m", "Level": "Model"}
    assert recorder.measured("m", {"name": "HandlerTime", "labels": labels, "set": 2.0}) is None
    assert values(meter) == {("HandlerTime", "m", "Model"): 2}
    with pytest.raises(ValueError, match="by its declaration"):
        recorder.measured("m", {"name": "HandlerTime", "set": 2.0})
