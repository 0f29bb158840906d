"""The trace flags of `tritonserver` -> fields of our configuration."""

from typing import Any

import pytest

from trivium.catalogue import CATALOGUE
from trivium.servers.triton.command.settings import CommandSettings, settle
from trivium.types.errors import ServeError


def told(*config: str, **flags: Any) -> CommandSettings:
    given = {f"--{name.replace('_', '-')}": value for name, value in flags.items()}
    return settle(CATALOGUE, {"--trace-config": config, **given})


def fields(settings: CommandSettings) -> dict[str, Any]:
    config = settings.config
    names = ("file", "endpoint", "levels", "rate", "count", "frequency")
    return {name: getattr(config.tracing, name) for name in names}


OFF = {"file": "", "endpoint": "", "levels": "", "rate": 1000, "count": -1, "frequency": 0}
SENT = {"endpoint": "http://localhost:4318/v1/traces"}


@pytest.mark.parametrize(
    ("config", "flags", "expected"),
    [
        ((), {}, {}),
        (("level=TIMESTAMPS", "level=tensors"), {}, {"levels": "timestamps,tensors"}),
        (("level=min",), {"trace_level": ("TENSORS",)}, {"levels": "timestamps,tensors"}),
        (("level=TIMESTAMPS", "level=OFF"), {}, {"levels": ""}),
        (("rate=5", "count=7"), {"trace_rate": 3}, {"rate": 5, "count": 7}),
        ((), {"trace_rate": 3, "trace_count": 4, "trace_log_frequency": 5}, {"rate": 3, "count": 4, "frequency": 5}),
        (("triton,file=/t", "triton,log-frequency=9"), {"trace_file": "/u"}, {"file": "/t", "frequency": 9}),
        ((), {"trace_file": "/u"}, {"file": "/u"}),
        (("mode=OpenTelemetry", "triton,file=/t"), {}, SENT),
        (("mode=opentelemetry", "opentelemetry,url=h:1", "rate=0"), {}, {"endpoint": "h:1", "rate": 0}),
        (("opentelemetry,url=h:1",), {}, {}),
    ],
)  # fmt: skip
def test_flags_and_fields(config: tuple[str, ...], flags: dict[str, Any], expected: dict[str, Any]) -> None:
    assert fields(told(*config, **flags)) == OFF | expected


def test_spans_are_batched_as_told() -> None:
    config = told(
        "mode=opentelemetry",
        "opentelemetry,bsp_max_queue_size=7",
        "opentelemetry,bsp_schedule_delay=100",
        "opentelemetry,bsp_max_export_batch_size=3",
        "opentelemetry,resource=a=b",
        "opentelemetry,resource=c=d,e",
    ).config
    assert (config.tracing.queue, config.tracing.delay, config.tracing.batch) == (7, 0.1, 3)
    assert config.tracing.resource == "service.name=triton-inference-server,a=b,c=d,e"


@pytest.mark.parametrize(
    ("config", "text"),
    [
        (("level",), "--trace-config option format is '<trace mode>,<setting>=<value>'. Got level"),
        (("rate=",), "--trace-config option format is '<trace mode>,<setting>=<value>'. Got rate="),
        ((",rate=1",), "No trace mode specified."),
        (("zipkin,url=x",), 'invalid value for trace mode option: zipkin. Available options are "triton"'),
        (("mode=zipkin",), "invalid value for trace mode option: zipkin"),
        (("loud=1",), 'Bad option: "--trace-config loud"'),
        (("triton,loud=1",), 'Bad option: "--trace-config triton,loud"'),
        (("rate=x",), "Invalid option value. Got x"),
        (("level=LOUD",), "invalid value for trace level option: LOUD"),
    ],
)
def test_refusals(config: tuple[str, ...], text: str) -> None:
    with pytest.raises(ServeError) as caught:
        told(*config)
    assert text in caught.value.message


def test_what_is_told_for_nothing() -> None:
    assert "no --trace-config triton,file" in told("level=TIMESTAMPS").unused[0]
    assert told("level=TIMESTAMPS", "triton,file=/t").unused == ()
    (unused,) = told("mode=opentelemetry", trace_file="/t").unused
    assert unused == "--trace-file (traces are sent to a collector)"
