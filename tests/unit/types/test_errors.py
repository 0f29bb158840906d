"""Errors as values: nothing of what their frames had in hand is kept, and their words are."""

import gc
import logging
import weakref
from collections.abc import Callable, Iterator

import pytest

from trivium.types.errors import Code, ConfigError, ServeError, anew, frameless, noted
from trivium.types.findings import Finding, Severity


class Body:
    """What a frame has in hand."""


@pytest.fixture(autouse=True)
def uncollected() -> Iterator[None]:
    gc.disable()
    yield
    gc.enable()


def refused(body: Body, step: str) -> None:
    """Raise an error that comes from others, in each way that there is."""
    try:
        try:
            raise KeyError("first")
        except KeyError as error:
            if step == "plain":
                raise ServeError(Code.INVALID, "second") from None
            if step == "cause":
                raise ServeError(Code.INVALID, "second") from error
            raise ServeError(Code.INVALID, "second")  # noqa: B904 - its context is what is tried
    except ServeError as error:
        raise ServeError(Code.INVALID, "third") from error


def handed_on(step: str) -> tuple[ServeError, "weakref.ref[Body]"]:
    body = Body()
    try:
        refused(body, step)
    except ServeError as error:
        return frameless(error), weakref.ref(body)
    raise AssertionError("it is refused")


@pytest.mark.parametrize("step", ["plain", "cause", "context"])
def test_nothing_is_kept_by_an_error_nor_by_what_it_comes_from(step: str) -> None:
    error, body = handed_on(step)
    assert body() is None
    assert (error.message, str(error.__cause__)) == ("third", "second")


def test_errors_that_come_from_one_another_end() -> None:
    first, second = ValueError(), ValueError()
    first.__cause__, second.__context__ = second, first
    assert frameless(first) is first


def test_a_fault_keeps_its_traceback_as_text(caplog: pytest.LogCaptureFixture) -> None:
    def failing() -> Exception:
        try:
            raise RuntimeError("a fault")
        except RuntimeError as error:
            return noted(error)

    fault = failing()
    assert fault.__traceback__ is None
    logging.getLogger("test").error("it failed", exc_info=fault)
    assert "Traceback" in caplog.text
    assert "in failing" in caplog.text
    assert not hasattr(noted(ServeError(Code.INVALID, "said")), "__notes__")


def thrice(raising: Callable[[], None]) -> None:
    for _ in range(3):
        with pytest.raises(ServeError):
            raising()


def test_a_value_may_be_raised_again_and_again() -> None:
    kept = ServeError(Code.QUEUE_FULL, "full", 1.0, 503)
    bodies = []

    def raising() -> None:
        body = Body()
        bodies.append(weakref.ref(body))
        raise anew(kept)

    thrice(raising)
    assert kept.__traceback__ is None
    assert not any(body() for body in bodies)


def test_what_is_raised_anew_is_the_same_in_every_way() -> None:
    finding = Finding(Severity.ERROR, "config.pbtxt", 1, "name", "found", "expected", "hint")
    error = ConfigError((finding,))
    error.__cause__ = ValueError("why")
    again = anew(error)
    assert again is not error
    assert type(again) is ConfigError
    assert (str(again), again.findings, again.code, again.__cause__) == (
        str(error),
        (finding,),
        Code.LOAD_FAILED,
        error.__cause__,
    )
