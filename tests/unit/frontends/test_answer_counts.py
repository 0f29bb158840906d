"""Answers over HTTP are counted by their status: each once, however many parts it has and whoever writes it."""

import pytest

from trivium.frontends.answer_counts import CountedProtocol
from trivium.types.errors import Code, ServeError
from trivium.types.operations import Live, ResponsePart
from trivium.types.wire import NOTHING_YET, Body, Head, HttpAnswer, Target, costly

HEAD, TARGET, BODY, PART = Head("GET", "/", "", {}), Target("x"), Body(b""), ResponsePart()


def answer(status: int) -> HttpAnswer:
    return HttpAnswer(status, b"", (), 0)


class Says:
    """A protocol that answers what it is told to, one after the other."""

    def __init__(self, *answers: HttpAnswer) -> None:
        self.answers = list(answers)

    def head(self, head: Head) -> Target:
        return TARGET

    def is_costly(self, head: Head, data: bytes | memoryview) -> bool:
        return bool(data)

    def decode(self, head: Head, target: Target, body: Body) -> tuple[Live, "Says"]:
        return Live(), self

    def encode(self, part: ResponsePart) -> HttpAnswer:
        return self.answers.pop(0)

    def refuse(self, error: ServeError) -> HttpAnswer:
        return self.answers.pop(0)


@pytest.mark.parametrize(
    ("answers", "digit"),
    [
        ([answer(200)], 2),
        ([answer(200), answer(200), answer(500)], 2),
        ([NOTHING_YET, answer(404)], 4),
        ([costly(lambda: answer(200))], 2),
        ([costly(lambda: answer(503)), answer(200)], 5),
    ],
)
def test_an_answer_counts_once_by_the_status_that_it_begins_with(
    answers: list[HttpAnswer], digit: int
) -> None:
    counts = [0] * 10
    protocol = CountedProtocol(Says(*answers), counts)
    assert (protocol.head(HEAD), protocol.is_costly(HEAD, b"x")) == (TARGET, True)
    _, encoder = protocol.decode(HEAD, TARGET, BODY)
    for each in answers:
        written = encoder.encode(PART)
        if write := getattr(each, "write", None):
            assert not any(counts)
            assert getattr(written, "write")() == write()  # noqa: B009 - only a costly one has it
        else:
            assert written is each
    assert counts == [int(each == digit) for each in range(10)]


def test_a_refusal_counts() -> None:
    counts = [0] * 10
    protocol = CountedProtocol(Says(answer(404)), counts)
    assert protocol.refuse(ServeError(Code.NOT_FOUND, "no")).status == 404
    assert counts[4] == sum(counts) == 1
