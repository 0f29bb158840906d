import pytest

from trivium.codecs.request_fields import RequestFields
from trivium.types import reasons
from trivium.types.errors import Code, ServeError


def refused(read):
    with pytest.raises(ServeError) as caught:
        read()
    assert caught.value.code is Code.INVALID
    return caught.value


@pytest.mark.parametrize(
    ("method", "arguments", "value", "expected"),
    [
        ("flag", (), True, True),
        ("flag", (), None, None),
        ("number", (0, 2), 1, 1.0),
        ("number", (0, 2), 2.0, 2.0),
        ("integer", (0, 5), 5, 5),
        ("text", (), "a", "a"),
        ("texts", (2,), "a", ("a",)),
        ("texts", (2,), ["a", "b"], ("a", "b")),
        ("integers", (2,), 3, (3,)),
        ("integers", (2,), [3, 4], (3, 4)),
        ("biases", (), {"3": -100, "4": 1.5}, {3: -100.0, 4: 1.5}),
        ("objects", (), {"a": 1}, {"a": 1}),
    ],
)
def test_values_of_each_type(method, arguments, value, expected):
    fields = RequestFields({"x": value})
    found = getattr(fields, method)("x", *arguments)
    assert (found, type(found)) == (expected, type(expected))
    assert getattr(fields, method)("x", *arguments) in (None, (), {})


@pytest.mark.parametrize(
    ("method", "arguments", "value"),
    [
        ("flag", (), 1),
        ("flag", (), "true"),
        ("number", (0, 2), True),
        ("number", (0, 2), 2.1),
        ("number", (0, 2), "1"),
        ("integer", (0, 5), True),
        ("integer", (0, 5), 1.0),
        ("integer", (0, 5), -1),
        ("text", (), 5),
        ("texts", (2,), ["a", "b", "c"]),
        ("texts", (2,), [""]),
        ("texts", (2,), [1]),
        ("integers", (2,), [True]),
        ("integers", (2,), [-1]),
        ("integers", (2,), [2**31]),
        ("biases", (), {"x": 1}),
        ("biases", (), {"1": 101}),
        ("biases", (), {"1": True}),
        ("biases", (), [1]),
        ("objects", (), [1]),
    ],
)
def test_a_wrong_value_is_named_with_what_was_expected(method, arguments, value):
    error = refused(lambda: getattr(RequestFields({"x": value}, "outer."), method)("x", *arguments))
    assert "'outer.x'" in error.message
    assert "expected is" in error.message
    assert (error.reason, error.metadata["field"]) == (reasons.FIELD, "outer.x")


def test_what_is_long_or_deep_is_shown_in_part():
    deep: list[object] = []
    for _ in range(500):
        deep = [deep]
    for value in ("x" * 10**6, list(range(10**5)), deep):
        assert len(refused(lambda value=value: RequestFields({"x": value}).flag("x")).message) < 200


@pytest.mark.parametrize(
    ("method", "arguments", "text", "expected"),
    [
        ("number", (0, 2), "0.5", 0.5),
        ("number", (0, 2), "1", 1.0),
        ("flag", (), "True", True),
        ("flag", (), "false", False),
        ("integer", (0, 9), "7", 7),
        ("integers", (9,), "[1, 2]", (1, 2)),
        ("texts", (9,), '["a", "b"]', ("a", "b")),
        ("texts", (9,), "plain", ("plain",)),
        ("text", (), "5", "5"),
        ("biases", (), '{"1": 2}', {1: 2.0}),
        ("number", (0, 2), "None", None),
    ],
)
def test_values_that_come_as_text(method, arguments, text, expected):
    assert getattr(RequestFields({"x": text}, as_text=True), method)("x", *arguments) == expected


def test_text_that_is_no_value_is_wrong():
    assert "'x'" in refused(lambda: RequestFields({"x": "much"}, as_text=True).number("x")).message


def test_what_nobody_has_read_is_refused_with_the_nearest_name():
    fields = RequestFields({"a": 1, "temprature": 2, "b": None})
    assert fields.integer("a") == 1
    error = refused(lambda: fields.refuse_others(("temperature", "top_p")))
    assert "Did you mean 'temperature'?" in error.message
    fields.take("temprature")
    fields.refuse_others()


def test_what_is_not_served_is_refused_unless_it_asks_for_nothing():
    RequestFields({"x": 1}).refuse("x", "Leave it out.", 1)
    RequestFields({"x": None}).refuse("x", "Leave it out.")
    for value in (True, 2, [1]):
        error = refused(lambda value=value: RequestFields({"x": value}).refuse("x", "Leave it out.", 1))
        assert "not supported in this version. Leave it out." in error.message
        assert error.reason == reasons.UNSERVED_FIELD
