"""What a typed line does to a conversation, and what is shown of answers and faults."""

from collections.abc import Iterator

import pytest

from trivium.chat.client import ChatClient, piece, refusal
from trivium.chat.conversation import SETTINGS, Conversation, react
from trivium.chat.server_client import ChatFailure
from trivium.chat.terminal import converse


def shown(conversation: Conversation, line: str) -> str:
    return react(conversation, line).shown


def test_a_question_is_sent_behind_all_that_was_said() -> None:
    told = Conversation("m", "Be brief.", settings={"seed": 1}).after("a", "b")
    assert react(told, " c \n").question == "c"
    assert told.body("c") == {
        "model": "m",
        "stream": True,
        "seed": 1,
        "messages": [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": "a"},
            {"role": "assistant", "content": "b"},
            {"role": "user", "content": "c"},
        ],
    }
    assert "model" not in Conversation().body("c")


def test_settings_are_read_shown_and_taken_back() -> None:
    found = react(Conversation(), "/set temperature 0.5")
    assert (found.shown, found.question) == ("temperature is 0.5.", "")
    assert found.conversation.settings == {"temperature": 0.5}
    assert "temperature  0.5" in shown(found.conversation, "/show")
    assert react(found.conversation, "/set temperature").conversation.settings == {}


@pytest.mark.parametrize("name", SETTINGS)
@pytest.mark.parametrize("value", ["hot", "-1", "nan", "1e99x", "1.5.2"])
def test_a_value_that_is_none_is_refused_with_what_was_expected(name: str, value: str) -> None:
    found = react(Conversation(), f"/set {name} {value}")
    assert f"{name} is '{value}'; expected is {SETTINGS[name][1]}." == found.shown
    assert found.conversation.settings == {}


def test_other_commands() -> None:
    told = Conversation(system="x").after("a", "b").after("c", "d")
    assert react(told, "/clear").conversation == Conversation(system="x")
    assert react(told, "/system y z").conversation == Conversation(system="y z")
    again = react(told, "/again")
    assert (again.question, again.conversation.turns) == ("c", (("a", "b"),))
    assert shown(Conversation(), "/again") == "Nothing has been asked yet."
    assert react(told, "/exit").ends
    assert shown(told, "/sett x") == "There is no command /sett. Did you mean /set?"
    assert shown(told, "/set x 1").startswith("There is no setting 'x'. There are: temperature")
    for line in shown(told, "/help").splitlines():
        assert react(told, line.split()[0]).shown[:16] != "There is no comm"
    assert not react(told, "  ").question


class Client(ChatClient):
    """Answers by a script, and remembers what it was asked."""

    def __init__(self, *answers: list[str | BaseException]) -> None:
        super().__init__("here:1")
        self._answers = iter(answers)
        self.asked: list[object] = []

    def ask(self, body) -> Iterator[str]:
        self.asked.append(body["messages"])
        for one in next(self._answers):
            if isinstance(one, BaseException):
                raise one
            yield one


def conversed(client: Client, *lines: str) -> tuple[bool, str]:
    said: list[str] = []
    return converse(client, Conversation("m"), iter(lines), said.append), "".join(said)


def test_answers_are_shown_as_they_come_and_nothing_of_them_is_obeyed() -> None:
    client = Client(["he", "llo"], ["\x1b[31m\n"])
    assert conversed(client, "a\n", "\n", "b\n", "/exit", "c") == (True, "hello\n\\x1b[31m\n\n")
    assert [len(messages) for messages in client.asked] == [1, 3]


def test_what_was_answered_before_a_fault_or_an_end_is_kept() -> None:
    client = Client(
        ["he", ChatFailure("broke off.")], ["x", KeyboardInterrupt()], [ChatFailure("no.")], ["y"]
    )
    assert conversed(client, "a", "b", "c", "d") == (False, "he\nbroke off.\nx\nno.\ny\n")
    last = [(one["role"], one["content"]) for one in client.asked[-1]]
    assert last[1::2] == [("assistant", "he"), ("assistant", "x")]
    assert last[-1] == ("user", "d")


@pytest.mark.parametrize(
    ("event", "text"),
    [
        (b'{"choices":[{"delta":{"content":"a"}}]}', "a"),
        (b'{"choices":[{"delta":{"role":"assistant","content":null}}]}', ""),
        (b'{"choices":[],"usage":{}}', ""),
    ],
)
def test_an_event_has_its_piece(event: bytes, text: str) -> None:
    assert piece(event) == text


@pytest.mark.parametrize("event", [b"{", b"[]", b'{"choices":5}', b'{"choices":[{}]}', b"\xff"])
def test_an_event_that_is_none_is_a_fault(event: bytes) -> None:
    with pytest.raises(ChatFailure, match="cannot be read"):
        piece(event)


def test_faults_of_the_server_are_told_in_its_words() -> None:
    with pytest.raises(ChatFailure, match="it failed"):
        piece(b'{"error":{"message":"it failed"}}')
    assert refusal(404, b'{"error":{"message":"no model"}}') == "no model"
    assert refusal(502, b"<html>") == "The server answers with status 502: <html>"


@pytest.mark.parametrize("url", ["", "ftp://x", "http://"])
def test_an_address_that_is_none_is_refused(url: str) -> None:
    with pytest.raises(ChatFailure, match="no address of a server"):
        ChatClient(url)
