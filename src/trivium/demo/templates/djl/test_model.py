"""The handler in this process: a debugger stops in it."""

from trivium.testing import handler


def test_words_are_counted() -> None:
    with handler("models/words") as h:
        assert h.request({"text": "to be or not"}).json() == {"words": 4}


def test_a_request_without_text_fails() -> None:
    with handler("models/words") as h:
        assert h.request({}).error is not None
