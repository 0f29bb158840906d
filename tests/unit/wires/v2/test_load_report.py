"""The load of a model's cache in a header of answers to generate (ORCA), as Triton 2.73 writes it."""

import json
import logging

import pytest

from trivium.types.metrics import MetricFamily, MetricSeries
from trivium.types.operations import ResponsePart
from trivium.types.wire import NOTHING_YET, Head, HttpAnswer
from trivium.wires.v2.load_report import FAMILY, LoadReports, NoLoadError, load_report


def family(**blocks):
    series = (
        MetricSeries((("kv_cache_block_type", name), ("model", "m")), value) for name, value in blocks.items()
    )
    return MetricFamily(FAMILY, "gauge", "", tuple(series))


FULL = family(tokens_per=64, used=3, max=12, free=9)


class Plain:
    """Writes the answers that the test has laid out, one for each part."""

    def __init__(self, *answers):
        self.answers = list(answers)

    def encode(self, part):
        return self.answers.pop(0)


def answered(form, metric, *answers):
    fields = {} if form is None else {b"endpoint-load-metrics-format": form}
    encoder = LoadReports(metric).around(Head("POST", "/", "", fields), Plain(*answers))
    return [encoder.encode(ResponsePart()) for _ in answers]


def test_text_and_json():
    text = "TEXT named_metrics.kv_cache_utilization=0.250000, named_metrics.max_token_capacity=768"
    assert load_report("text", FULL) == text
    word, _, body = load_report("json", FULL).partition(" ")
    assert word == "JSON"
    assert json.loads(body) == {"named_metrics": {"kv_cache_utilization": 0.25, "max_token_capacity": 768}}


def test_a_cache_without_blocks_is_not_used():
    assert "kv_cache_utilization=0.000000" in load_report("text", family(tokens_per=1, used=0, max=0))


@pytest.mark.parametrize(
    "found",
    [None, family(), family(tokens_per=1, used=2), family(tokens_per=-1, used=1, max=2),
     family(tokens_per=float("nan"), used=1, max=2), family(tokens_per=float("inf"), used=1, max=2)],
)  # fmt: skip
def test_what_is_not_told_is_not_made_up(found):
    with pytest.raises(NoLoadError, match=FAMILY):
        load_report("json", found)


def test_numbers_beyond_all_bounds_do_not_fail_the_answer():
    """They are a model's own, and it is the client's answer that they go with."""
    answer = HttpAnswer(500, b"A: b\r\n", (b"x",), 1, closes=True, reason=b"why")
    huge = family(tokens_per=1e308, used=1, max=1e308)
    assert answered(b"text", lambda name: huge, answer) == [answer]
    (told,) = answered(b"json", lambda name: FULL, answer)
    assert (told.closes, told.reason, told.status) == (True, b"why", 500), "all else of an answer stays"


def test_the_header_stands_on_the_first_part_that_goes_out():
    first = HttpAnswer(200, b"Content-Type: text/event-stream\r\n", (b"a",), 1, False)
    last = HttpAnswer(200, b"Content-Type: text/event-stream\r\n", (b"b",), 1)
    none, one, two = answered(b"text", lambda name: FULL, NOTHING_YET, first, last)
    assert none is NOTHING_YET
    assert one.fields.startswith(first.fields)
    assert b"\r\nendpoint-load-metrics: TEXT named_metrics." in one.fields
    assert (one.buffers, one.size, one.final) == (first.buffers, 1, False)
    assert two is last


def test_who_does_not_ask_gets_the_answer_as_it_is():
    answer = HttpAnswer(200, b"A: b\r\n", (), 0)
    assert answered(None, lambda name: FULL, answer) == [answer]


def test_why_there_is_none_is_logged_once(caplog: pytest.LogCaptureFixture):
    reports = LoadReports(lambda name: None)
    answer = HttpAnswer(200, b"A: b\r\n", (), 0)
    with caplog.at_level(logging.WARNING):
        for form in (b"text", b"json", b"xml", b"yaml", b"text"):
            encoder = reports.around(
                Head("POST", "/", "", {b"endpoint-load-metrics-format": form}), Plain(answer)
            )
            assert encoder.encode(ResponsePart()) == answer
    assert len(caplog.messages) == 2
    assert "tokens_per, used, max" in caplog.messages[0]
    assert "'xml' is neither text nor json" in caplog.messages[1]
