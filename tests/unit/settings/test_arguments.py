"""How the arguments of a request are read by the rows of what it asks for, and how listings are cut into pages."""

import pytest

from trivium.settings.arguments import Arguments, asked, page
from trivium.settings.kinds import JAVA_SWITCH, Integer
from trivium.settings.setting import Setting
from trivium.types.errors import Code, ServeError
from trivium.types.sources import SourceSetting
from trivium.types.spec import Origin

ROWS = (
    Setting("url"),
    Setting("waits", JAVA_SWITCH, True),
    Setting("size", Integer(1), None),
    Setting("delay", Integer(0), None),
    Setting("limit", Integer(0, 100), 100),
)


def refused(row: Setting, text: str) -> ServeError:
    return ServeError(Code.INVALID, f"{row.name} is {text}")


@pytest.mark.parametrize(
    ("name", "texts", "value"),
    [
        ("url", {"url": " a "}, " a "),
        ("url", {}, ""),
        ("waits", {"waits": "TRUE"}, True),
        ("waits", {"waits": "yes"}, False),
        ("waits", {"waits": ""}, True),
        ("size", {"size": "+7"}, 7),
        ("size", {"size": "0"}, None),
        ("size", {"size": "2147483647"}, 2**31 - 1),
        ("delay", {"delay": "0"}, 0),
        ("limit", {"limit": "-1"}, 100),
        ("limit", {"limit": "101"}, 100),
        ("limit", {"limit": "0"}, 0),
        ("limit", {"other": "3"}, 100),
    ],
)
def test_a_value_is_what_its_kind_reads_or_the_default(name, texts, value):
    assert Arguments.of(ROWS, texts).value(name) == value
    assert Arguments.of(ROWS, texts, refused).value(name) == value


@pytest.mark.parametrize("text", ["x", " 7", "7.0", "++7", "2147483648", "00000000001", "٣", "-"])
def test_what_is_no_number_is_refused_or_counts_as_not_given(text):
    assert Arguments.of(ROWS, {"limit": text}).value("limit") == 100
    with pytest.raises(ServeError) as caught:
        Arguments.of(ROWS, {"limit": text}, refused).value("limit")
    assert caught.value.message == f"limit is {text}"


def test_a_sign_that_a_server_does_not_know_makes_no_number():
    assert Integer(signs="-").read("-7") == -7
    assert Integer(signs="-").refuses("+7")


def test_arguments_that_are_given_go_to_the_keys_of_the_model():
    given = Arguments.of(ROWS, {"url": "", "size": "08", "delay": "0", "waits": "yes"})
    over = given.over({"url": "place", "size": "batch", "delay": "delay", "limit": "limit"})
    assert over == {
        "batch": SourceSetting("8", Origin("the request", "size")),
        "delay": asked("delay", "0"),
        "limit": asked("limit", "100"),
    }
    assert over["batch"].origin == Origin("the request", "size")


@pytest.mark.parametrize(
    ("limit", "offset", "names_end", "rows", "token"),
    [
        (2, 0, False, "ab", "2"),
        (2, 1, False, "bc", ""),
        (2, 1, True, "bc", "3"),
        (2, 2, True, "c", ""),
        (0, 0, False, "", "0"),
        (2, 9, True, "", ""),
    ],
)
def test_a_page_names_the_one_behind_it(limit, offset, names_end, rows, token):
    shown, following = page("abc", limit, offset, names_end)
    assert (shown, following) == (rows, {"nextPageToken": token} if token else {})
