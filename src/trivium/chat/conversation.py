"""A conversation: its messages, its settings, and what a line that somebody types does to both. Pure."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from trivium.codecs.near_names import near

HELP = """\
/set NAME VALUE   change a setting: temperature, top_p, max_tokens, seed; /set NAME alone takes it back
/system TEXT      begin anew, with this as the system's message; without a text without one
/clear            begin anew
/again            have the last question answered anew
/show             show the settings
/help             show this
/exit             leave; so does Ctrl-D. Ctrl-C ends an answer"""


def _number(lowest: float, highest: float) -> Callable[[str], float]:
    def read(text: str) -> float:
        if not lowest <= (found := float(text)) <= highest:
            raise ValueError
        return found

    return read


def _integer(lowest: int) -> Callable[[str], int]:
    def read(text: str) -> int:
        if (found := int(text)) < lowest:
            raise ValueError
        return found

    return read


SETTINGS: Mapping[str, tuple[Callable[[str], float | int], str]] = {
    "temperature": (_number(0, 2), "a number from 0 to 2"),
    "top_p": (_number(0, 1), "a number from 0 to 1"),
    "max_tokens": (_integer(1), "a whole number from 1"),
    "seed": (_integer(0), "a whole number from 0"),
}
"""Names of settings -> how a text is read, and what is expected."""


@dataclass(frozen=True, slots=True)
class Conversation:
    """Holds what is sent with the next question."""

    model: str = ""
    system: str = ""
    turns: tuple[tuple[str, str], ...] = ()
    """Questions and their answers, the oldest first."""
    settings: Mapping[str, float | int] = field(default_factory=dict)

    def body(self, question: str) -> dict[str, object]:
        """Return the request that asks a question, behind all that was said."""
        messages = [{"role": "system", "content": self.system}] if self.system else []
        for asked, answered in self.turns:
            messages += [{"role": "user", "content": asked}, {"role": "assistant", "content": answered}]
        messages.append({"role": "user", "content": question})
        named = {"model": self.model} if self.model else {}
        return {**named, "messages": messages, "stream": True, **self.settings}

    def after(self, question: str, answer: str) -> "Conversation":
        """Return the conversation with one more turn."""
        return replace(self, turns=(*self.turns, (question, answer)))


@dataclass(frozen=True, slots=True)
class Reaction:
    """Says what a typed line does: the conversation from now on, what is shown, what is asked, and whether it ends."""

    conversation: Conversation
    shown: str = ""
    question: str = ""
    ends: bool = False


def react(conversation: Conversation, line: str) -> Reaction:
    """Return what a line does. What begins with a slash is a command, and never sent."""
    text = line.strip()
    if not text.startswith("/"):
        return Reaction(conversation, question=text)
    word, _, rest = text.partition(" ")
    command = _COMMANDS.get(word)
    if command is None:
        meant = near(word, _COMMANDS)
        hint = f"Did you mean {meant}?" if meant else "/help shows what there is."
        return Reaction(conversation, f"There is no command {word}. {hint}")
    return command(conversation, rest.strip())


def _set(conversation: Conversation, rest: str) -> Reaction:
    name, _, text = rest.partition(" ")
    if name not in SETTINGS:
        return Reaction(conversation, f"There is no setting {name!r}. There are: {', '.join(SETTINGS)}.")
    read, expected = SETTINGS[name]
    left = {other: value for other, value in conversation.settings.items() if other != name}
    if not text:
        return Reaction(replace(conversation, settings=left), f"{name} is as the model has it.")
    try:
        value = read(text.strip())
    except ValueError:
        return Reaction(conversation, f"{name} is {text.strip()!r}; expected is {expected}.")
    return Reaction(replace(conversation, settings={**left, name: value}), f"{name} is {value}.")


def _show(conversation: Conversation, rest: str) -> Reaction:
    rows = [("model", conversation.model or "the only one"), ("system", conversation.system or "none")]
    rows += [(name, str(conversation.settings.get(name, "as the model has it"))) for name in SETTINGS]
    return Reaction(conversation, "\n".join(f"{name:<12} {value}" for name, value in rows))


def _again(conversation: Conversation, rest: str) -> Reaction:
    if not conversation.turns:
        return Reaction(conversation, "Nothing has been asked yet.")
    *before, (question, _) = conversation.turns
    return Reaction(replace(conversation, turns=tuple(before)), question=question)


def _system(conversation: Conversation, rest: str) -> Reaction:
    return Reaction(replace(conversation, system=rest, turns=()), "Begun anew.")


_COMMANDS: Mapping[str, Callable[[Conversation, str], Reaction]] = {
    "/set": _set,
    "/system": _system,
    "/clear": lambda conversation, rest: Reaction(replace(conversation, turns=()), "Begun anew."),
    "/again": _again,
    "/show": _show,
    "/help": lambda conversation, rest: Reaction(conversation, HELP),
    "/exit": lambda conversation, rest: Reaction(conversation, ends=True),
    "/bye": lambda conversation, rest: Reaction(conversation, ends=True),
}
