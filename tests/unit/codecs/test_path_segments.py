"""Paths that lead somewhere else than they say, to one server or another on their way."""

import pytest

from trivium.codecs.path_segments import MOST_DECODINGS, misleading


def encoded(text: str, times: int) -> str:
    for _ in range(times):
        text = text.replace("%", "%25") if "%" in text else "".join(f"%{byte:02x}" for byte in text.encode())
    return text


@pytest.mark.parametrize(
    "path",
    [
        "",
        "/",
        "/m/model.zip",
        "/a//b",
        "/a%20b",
        "/a%25b",
        "/caf%C3%A9",
        "/v1.2...3",
        "/a;v=1/b",
        "/100%",
        encoded("x", 4),
    ],
)
def test_a_path_that_leads_where_it_says(path: str) -> None:
    assert misleading(path) == ""


@pytest.mark.parametrize(
    "segment",
    [
        *(
            "..",
            ".",
            "..;",
            "..;x=1",
            " ..",
            "..%20",
            "%2e%2e",
            "%2e.",
            "%252e%252e",
            "a%2fb",
            "a%5cb",
            "a\\b",
            "a%00",
            "%0a",
        ),
        *(
            "%ff",
            "%c0%ae%c0%ae",
            "%u002e%u002e",
            "%u2215",
            "%25u002e",
            "%EF%BC%8E%EF%BC%8E",
            "%EF%BC%8F",
            "%E2%80%A5",
        ),
        *(encoded("..", times) for times in range(1, MOST_DECODINGS + 5)),
        *(encoded("/", times) for times in range(1, MOST_DECODINGS + 5)),
        encoded("x", MOST_DECODINGS),
    ],
)
def test_a_segment_that_leads_elsewhere(segment: str) -> None:
    assert misleading(f"/m/{segment}/x"), segment
