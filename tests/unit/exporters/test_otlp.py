"""What is told of a collector before anything is sent; what arrives there `tests/e2e/test_traces` sees."""

import sys

import pytest

from trivium.exporters.otlp import Collector, Spans
from trivium.types.errors import Code, ServeError

NOWHERE = Collector("http://127.0.0.1:9/v1/traces", {"service.name": "s"}, 20, 0.05, 10)


def test_without_the_sdk_it_says_how_to_get_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "opentelemetry.sdk.trace", None)
    with pytest.raises(ServeError) as caught:
        Spans(NOWHERE)
    assert (caught.value.code, "'opentelemetry-sdk>=" in caught.value.message) == (
        Code.UNSUPPORTED,
        True,
    )


def test_settings_that_the_sdk_refuses():
    with pytest.raises(ServeError) as caught:
        Spans(Collector("http://127.0.0.1:9", {}, queue=1, batch=2))
    assert caught.value.code is Code.INVALID


def test_what_it_tells_of_itself():
    spans = Spans(NOWHERE)
    spans.close()
    assert (spans.file, spans.follows) == (None, True)
    assert spans.told == {
        "url": "http://127.0.0.1:9/v1/traces",
        "resource": "service.name=s",
        "bsp_max_queue_size": "20",
        "bsp_schedule_delay": "50",
        "bsp_max_export_batch_size": "10",
    }
