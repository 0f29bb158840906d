"""The handler in this process: a debugger stops in it."""

from trivium.testing import handler


def test_a_text_has_a_label() -> None:
    with handler("models/sentiment") as h:
        assert h.request({"text": "I love it", "top_k": 1}).json()[0]["name"] == "positive"


def test_a_wrong_request_is_refused() -> None:
    with handler("models/sentiment") as h:
        assert "text is a whole number" in str(h.request({"text": 3}).error)
