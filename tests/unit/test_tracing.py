import pytest

from trivium.catalogue import configured
from trivium.exporters.otlp import Spans
from trivium.exporters.trace_files import TraceFiles
from trivium.servers.native.server import SERVER
from trivium.servers.triton.server import SERVER as TRITON
from trivium.servers.triton.words.trace_text import text
from trivium.tracing import exporter, settings
from trivium.types.errors import ServeError
from trivium.types.tracing import Detail, TraceSettings


def test_places(tmp_path):
    assert (exporter(configured(), SERVER, text), configured().tracing.has_place) == (None, False)
    for config, kind in (
        (configured(trace_file=str(tmp_path / "t")), TraceFiles),
        (configured(trace_endpoint="http://127.0.0.1:9", trace_resource="a=b, c=d=e"), Spans),
    ):
        place = exporter(config, SERVER, text)
        place.close()
        assert (type(place), config.tracing.has_place) == (kind, True)
    assert place.told["resource"] == "a=b,c=d=e"


def test_settings():
    assert settings(configured(), SERVER) == TraceSettings()
    config = configured(
        trace_file="t", trace_levels="timestamps, tensors", trace_rate=5, trace_count=0, trace_frequency=3
    )
    assert settings(config, SERVER) == TraceSettings(frozenset(Detail), 5, 0, 3)


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"trace_file": "t", "trace_endpoint": "http://x"}, "not both"),
        ({"trace_file": "t", "trace_levels": "loud"}, "'loud'"),
        ({"trace_levels": "timestamps"}, "Give --trace-file"),
        ({"trace_endpoint": "http://x", "trace_resource": "a"}, "KEY=VALUE"),
    ],
)
def test_refusals(fields, words):
    config = configured(**fields)
    with pytest.raises(ServeError, match=words):
        assert (exporter(config, SERVER, text), settings(config, SERVER)) is None


def test_the_original_may_have_levels_without_a_place():
    config = configured(profile="triton", trace_levels="timestamps")
    assert settings(config, TRITON).details == {Detail.TIMES}
