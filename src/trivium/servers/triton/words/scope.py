"""A block of the file while it is being read, and what is said when something in it does not fit.

Knows the tables and what the block was given so far; must not know tokens, nor what a key means.
"""

from dataclasses import dataclass, field
from typing import Any

from trivium.codecs.near_names import near
from trivium.codecs.protobuf_schema import Field, Fields
from trivium.servers.triton.words.tokens import Token
from trivium.wires.v2.schema import MESSAGES, is_block

Words = tuple[str, str, str]
"""Found, expected, hint."""


@dataclass(slots=True)
class Scope:
    """A block: its message type and fields, its key, the message that it fills, and the line of its name."""

    type: str
    fields: Fields
    path: str
    message: Any
    line: int = 1
    given: dict[str, object] = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=dict)

    def __str__(self) -> str:
        return f"the block {self.path} (line {self.line})" if self.path else "the file itself"

    def key(self, name: str) -> str:
        """Return the key of a field of this block."""
        return f"{self.path}.{name}" if self.path else name

    def next_key(self, known: Field) -> str:
        """The key of the value that comes now: those of a list are counted."""
        if not known.is_list:
            return self.key(known.name)
        index = self.counts.get(known.name, 0)
        self.counts[known.name] = index + 1
        return f"{self.key(known.name)}[{index}]"

    def clash(self, known: Field) -> Words | None:
        """Return the fault of giving this field (again), None where there is none.

        Like protobuf's parsers, a plain scalar that was given its default before may be given again.
        """
        if known.is_list:
            return None
        for name in self.given:
            other = self.fields[name]
            if known.oneof and other.oneof == known.oneof and other is not known:
                found = f"{known.name} beside {name}"
                choices = [each.name for each in self.fields.values() if each.oneof == known.oneof]
                return found, f"only one of {', '.join(choices)}", f"Remove {known.name} or {name}."
        has_presence = is_block(known) or bool(known.oneof)
        if known.name in self.given and (has_presence or self.given[known.name] != known.default):
            return f"{known.name} a second time", "at most one in a block", "Remove the one that is wrong."
        return None

    def unknown_field(self, name: str) -> tuple[str, Words]:
        """The nearest field that may still be given (or nothing), and what is wrong with this one."""
        may_come = [each.name for each in self.fields.values() if each.is_list or each.name not in self.given]
        meant = near(name.lower(), may_come)
        owners = [message for message, fields in MESSAGES.items() if name in fields]
        if meant:
            hint = f"Did you mean {meant}?"
        elif owners:
            hint = f"It is a field of {', '.join(owners)}: move it there."
        else:
            hint = "Remove it, or correct its name."
        expected = f"one of {', '.join(self.fields)}" if self.fields else "no field at all"
        return meant, (f"the unknown field {name} in {self}", expected, hint)

    def wrong_close(self, token: Token, closer: str) -> Words:
        """A closing brace that is not this block's own; at the top of the file any."""
        if not closer:
            return f"{token} that closes nothing", "the name of a field", "Remove it, or open the block."
        return f"{token} at the end of {self}", f"`{closer}`", f"Close the block with `{closer}`."

    def never_closed(self, closer: str) -> Words:
        """The end of the file inside the block."""
        return f"{self} is still open at the end of the file", f"`{closer}`", f"Add `{closer}` where it ends."
