"""Why a request failed is in the log where its answer does not say so; once, and never more lines than are bearable."""

import json
from collections.abc import Callable

import pytest

from trivium.codecs.error_table import Wording
from trivium.frontends.causes import LINES, SECONDS, CauseLog, says
from trivium.types.access import AccessScope
from trivium.types.error_info import ErrorInfo
from trivium.types.errors import Code, ServeError, anew
from trivium.types.operations import Readiness, ResponsePart
from trivium.types.wire import HttpAnswer, RpcAnswer, Target
from trivium.wires.v2.errors import in_words

INFER = Target("infer", "m", scope=AccessScope.INFER)
LOAD = Target("load", "m", scope=AccessScope.MANAGE)
OWN = 'File "/models/m/config.pbtxt", line 3: the key \'dimz\' is none. Write "dims".'

Lines = Callable[[], list[str]]


@pytest.fixture
def lines(caplog: pytest.LogCaptureFixture) -> Lines:
    """What has been logged since this was asked for."""

    def taken() -> list[str]:
        assert all(record.levelname == "WARNING" for record in caplog.records)
        found = [record.getMessage() for record in caplog.records]
        caplog.clear()
        return found

    return taken


def answer(text: str, status: int = 500, reason: bytes | None = None) -> HttpAnswer:
    body = text.encode()
    return HttpAnswer(status, b"", (body,), len(body), reason=reason)


def test_a_foreign_text_has_its_cause_in_the_log_and_our_own_has_not(lines: Lines) -> None:
    causes, error = CauseLog(), ServeError(Code.MODEL_FAILED, OWN)
    causes.refused(error, INFER, answer(json.dumps({"error": f"Prediction failed. {OWN}"})))
    causes.refused(error, INFER, answer("", reason=OWN.encode()))
    assert lines() == []
    causes.refused(error, INFER, answer('{"error": "Prediction failed"}', 503))
    assert lines() == [f"A request to model 'm' is answered with 503, without its cause: {OWN}"]


@pytest.mark.parametrize(
    ("code", "target", "is_logged"),
    [
        (Code.MODEL_FAILED, INFER, True),
        (Code.NOT_READY, INFER, True),
        (Code.INVALID, INFER, False),  # what a client sent makes no lines of its own
        (Code.NOT_FOUND, INFER, False),
        (Code.NOT_FOUND, LOAD, True),
        (Code.INVALID, LOAD, True),
        (Code.NOT_FOUND, Target(""), False),  # no route
        (Code.UNAUTHENTICATED, LOAD, False),
        (Code.CANCELLED, LOAD, False),
    ],
)
def test_the_servers_failures_count_and_those_of_who_manages_it(
    code: Code, target: Target, is_logged: bool, lines: Lines
) -> None:
    CauseLog().refused(ServeError(code, OWN), target, answer("failed to poll from model repository"))
    CauseLog().ended(
        ServeError(code, OWN), target.scope if target.verb else AccessScope.ANY, RpcAnswer(code=13)
    )
    assert bool(lines()) is is_logged


def test_what_is_told_in_other_words_alone_comes_from_the_error_that_says_why(lines: Lines) -> None:
    told = anew(in_words(Wording(500), "failed to load 'm', failed to poll from model repository"))
    told.__cause__ = ServeError(Code.INVALID, OWN)
    CauseLog().refused(told, LOAD, answer(told.message))
    assert lines() == [f"A request to model 'm' is answered with 500, without its cause: {OWN}"]
    handlers = ServeError(Code.MODEL_FAILED, "Ours.")
    handlers.__cause__ = ServeError(Code.INTERNAL, OWN)
    CauseLog().refused(handlers, INFER, answer("Ours."))
    assert lines() == []


def test_a_model_that_is_not_ready_says_why_unless_it_will_be_by_itself(lines: Lines) -> None:
    for is_passing in (True, False):
        part = ResponsePart(answer=Readiness(False, OWN, is_passing))
        CauseLog().answered(part, INFER, answer("Model version not ready", 400))
    assert len(lines()) == 1
    CauseLog().answered(ResponsePart(answer=Readiness(False)), INFER, answer("", 400))
    assert lines() == []


def test_what_somebody_has_logged_is_not_logged_again(lines: Lines) -> None:
    error = ServeError(Code.LOAD_FAILED, OWN)
    error.is_logged = True
    CauseLog().refused(error, LOAD, answer("Failed to start workers"))
    assert lines() == []


def test_the_same_sentence_comes_once_in_a_minute_and_no_flood_of_them(lines: Lines) -> None:
    now = [0.0]
    causes = CauseLog(lambda: now[0])
    for i in range(3 * LINES):
        for _ in range(3):
            error = ServeError(Code.MODEL_FAILED, f"{OWN} {i}")
            causes.refused(error, INFER, answer("Prediction failed"))
    assert len(lines()) == LINES
    now[0] += SECONDS
    causes.refused(ServeError(Code.MODEL_FAILED, OWN), INFER, answer("Prediction failed"))
    first, second = lines()
    assert "more causes of failed requests are not in this log" in first
    assert second.endswith(OWN)


def test_a_line_is_one_line_of_bounded_length(lines: Lines) -> None:
    info = ErrorInfo.of("", model="a\nFAKE" * 1000)
    error = ServeError(Code.MODEL_FAILED, "x\r\nFAKE " * 10_000, info=info)
    CauseLog().refused(error, Target("infer"), answer("Prediction failed"))
    (line,) = lines()
    assert len(line) < 5000
    assert not {"\n", "\r"} & set(line)


@pytest.mark.parametrize("sentence", [OWN, 'a "quoted" \\path\\n\n', "Größe ✓ of the file", "x" * 10_000])
@pytest.mark.parametrize("ascii", [True, False])
def test_a_sentence_is_found_however_it_is_written(sentence: str, ascii: bool) -> None:
    assert says(b"\x0a\x10" + sentence.encode(), sentence)
    assert says(
        json.dumps({"code": 500, "message": sentence}, indent=2, ensure_ascii=ascii).encode(), sentence
    )
    assert not says(b"Prediction failed", sentence)
