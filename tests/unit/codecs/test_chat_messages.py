import pytest

from trivium.codecs.chat_messages import read_messages
from trivium.types import reasons
from trivium.types.errors import ServeError


def user(content, **fields):
    return {"role": "user", "content": content, **fields}


@pytest.mark.parametrize(
    ("messages", "expected"),
    [
        ([user("a")], [user("a")]),
        ([user("a", name="n")], [user("a", name="n")]),
        ([{"role": "developer", "content": "a"}], [{"role": "system", "content": "a"}]),
        ([user([{"type": "text", "text": "a"}, {"type": "text", "text": "b"}])], [user("a\nb")]),
        (
            [{"role": "assistant", "content": "a", "refusal": None, "tool_calls": None, "annotations": []}],
            [{"role": "assistant", "content": "a"}],
        ),
        (
            [{"role": "assistant", "content": [{"type": "refusal", "refusal": "no"}]}],
            [{"role": "assistant", "content": "no"}],
        ),
        ([user("")], [user("")]),
    ],
)
def test_messages(messages, expected):
    assert list(read_messages(messages)) == expected


@pytest.mark.parametrize(
    ("messages", "place", "reason"),
    [
        (None, "messages", reasons.FIELD),
        ([], "messages", reasons.FIELD),
        ({}, "messages", reasons.FIELD),
        (["a"], "messages[0]", reasons.FIELD),
        ([user("a"), {"content": "a"}], "messages[1].role", reasons.FIELD),
        ([{"role": "robot", "content": "a"}], "messages[0].role", reasons.FIELD),
        ([{"role": "tool", "content": "a"}], "messages[0].role", reasons.UNSERVED_FIELD),
        ([user(None)], "messages[0].content", reasons.FIELD),
        ([user([])], "messages[0].content", reasons.FIELD),
        ([user([5])], "messages[0].content[0]", reasons.FIELD),
        ([user([{"type": "text"}])], "messages[0].content[0]", reasons.FIELD),
        ([user([{"type": ["text"]}])], "messages[0].content[0]", reasons.FIELD),
        (
            [user([{"type": "text", "text": "a"}, {"type": "image_url", "image_url": {"url": "x"}}])],
            "messages[0].content[1].type",
            reasons.UNSERVED_FIELD,
        ),
        ([user("a", tool_calls=[{}])], "messages[0].tool_calls", reasons.UNSERVED_FIELD),
        ([user("a", mood="good")], "messages[0].mood", reasons.FIELD),
        ([user("a", name=5)], "messages[0].name", reasons.FIELD),
    ],
)
def test_refusals_name_the_place(messages, place, reason):
    with pytest.raises(ServeError) as caught:
        read_messages(messages)
    assert (caught.value.metadata["field"], caught.value.reason) == (place, reason)
    assert f"'{place}'" in caught.value.message
