import pytest

from trivium.codecs.chat_messages import read_messages
from trivium.types import reasons
from trivium.types.errors import ServeError
from trivium.types.ignored_fields import IgnoredFields


def user(content, **fields):
    return {"role": "user", "content": content, **fields}


def call(arguments):
    return {"id": "c", "type": "function", "function": {"name": "f", "arguments": arguments}}


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
        ([{"role": "tool", "content": "5", "tool_call_id": "c"}],) * 2,
        (
            [{"role": "assistant", "content": None, "tool_calls": [call('{"a": 1}')]}],
            [{"role": "assistant", "content": "", "tool_calls": [call({"a": 1})]}],
        ),
        (
            [{"role": "assistant", "content": "", "tool_calls": [call("no JSON"), call("")]}],
            [{"role": "assistant", "content": "", "tool_calls": [call("no JSON"), call({})]}],
        ),
        (
            [{"role": "assistant", "content": "a", "reasoning": "because"}],
            [{"role": "assistant", "content": "a", "reasoning": "because", "reasoning_content": "because"}],
        ),
        (
            [{"role": "assistant", "content": None, "reasoning_content": "so"}],
            [{"role": "assistant", "content": "", "reasoning": "so", "reasoning_content": "so"}],
        ),
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
        ([{"role": "function", "content": "a"}], "messages[0].role", reasons.UNSERVED_FIELD),
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
        ([user("a", tool_calls=[{}])], "messages[0].tool_calls[0]", reasons.FIELD),
        ([user("a", tool_calls={})], "messages[0].tool_calls", reasons.FIELD),
        ([user("a", function_call={"name": "f"})], "messages[0].function_call", reasons.UNSERVED_FIELD),
        ([{"role": "assistant", "content": None}], "messages[0].content", reasons.FIELD),
        ([{"role": "assistant", "content": "a", "reasoning": 5}], "messages[0].reasoning", reasons.FIELD),
        ([{"role": "tool", "content": "a", "tool_call_id": 5}], "messages[0].tool_call_id", reasons.FIELD),
        ([user("a", mood="good")], "messages[0].mood", reasons.FIELD),
        ([user("a", name=5)], "messages[0].name", reasons.FIELD),
    ],
)
def test_refusals_name_the_place(messages, place, reason):
    with pytest.raises(ServeError) as caught:
        read_messages(messages)
    assert (caught.value.metadata["field"], caught.value.reason) == (place, reason)
    assert f"'{place}'" in caught.value.message


def test_what_no_message_has_is_ignored_where_that_is_allowed():
    ignored = IgnoredFields()
    part = {"type": "text", "text": "b", "cache_control": {"type": "ephemeral"}}
    messages = [user("a", mood="good", id="1", extra=None), user([part])]
    assert read_messages(messages, ignored=ignored) == (user("a"), user("b"))
    assert list(ignored.found) == ["messages.mood", "messages.id", "messages.content.cache_control"]
