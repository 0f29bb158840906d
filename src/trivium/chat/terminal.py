"""Holds a conversation with somebody at a terminal, or with a pipe, whose lines are questions."""

import sys
from collections.abc import Callable, Iterator
from contextlib import closing, suppress

from trivium.chat.client import ChatClient
from trivium.chat.conversation import Conversation, react
from trivium.chat.server_client import ChatFailure
from trivium.codecs.visible_text import visible

PROMPT = ">>> "


def converse(
    client: ChatClient, conversation: Conversation, lines: Iterator[str], say: Callable[[str], None]
) -> bool:
    """Answer each line until there is none, or one says that it is the end; False where an answer failed."""
    went_well = True
    for line in lines:
        reaction = react(conversation, line)
        conversation = reaction.conversation
        if reaction.ends:
            break
        if reaction.shown:
            say(f"{visible(reaction.shown)}\n")
        if not reaction.question:
            continue
        answer, failure = _answered(client, conversation, reaction.question, say)
        if failure:
            say(f"{visible(failure)}\n")
            went_well = False
        if answer or not failure:
            conversation = conversation.after(reaction.question, answer)
    return went_well


def _answered(
    client: ChatClient, conversation: Conversation, question: str, say: Callable[[str], None]
) -> tuple[str, str]:
    """Show an answer as it comes; return it, and why it ended early. What a model says is text for a terminal, not to
    be obeyed.
    """
    pieces: list[str] = []
    failure = ""
    try:
        with closing(client.ask(conversation.body(question))) as stream:
            for text in stream:
                pieces.append(text)
                say(visible(text))
    except ChatFailure as error:
        failure = str(error)
    except KeyboardInterrupt:
        failure = "" if pieces else "Ended."
    if pieces:
        say("\n")
    return "".join(pieces), failure


def typed() -> Iterator[str]:
    """Give the lines that somebody types, or that come through a pipe; Ctrl-C forgets a line."""
    if not sys.stdin.isatty():
        yield from sys.stdin
        return
    with suppress(ImportError):
        import readline  # noqa: F401 - lines can be edited from then on
    while True:
        try:
            yield input(PROMPT)
        except KeyboardInterrupt:
            sys.stdout.write("\n")
        except EOFError:
            sys.stdout.write("\n")
            return
