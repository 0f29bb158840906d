"""The kinds of values of `tritonserver`'s flags: what is refused has the original's words.

Pure. Which flags there are says `flag_table`, what they do `settings`. Source: spec sheet `triton`, section 1.1.
"""

from typing import Any

from trivium.settings.kinds import Number, OneOf, Text, Truth, Whole
from trivium.settings.setting import Setting
from trivium.types.errors import Code, ServeError

_NO_NUMBER = "Invalid option value. Got {text}"
_LARGEST_FLOAT = 1.7976931348623157e308

TEXT = Text(form="string")
BOOL = Truth(
    {"true": True, "on": True, "1": True, "false": False, "off": False, "0": False},
    form="boolean",
    refusal='Bad option: "{name}".\ninvalid value for bool option: {text}',
)
INT = Whole(-(2**63), 2**63 - 1, form="integer", refusal=_NO_NUMBER)
FLOAT = Number(-_LARGEST_FLOAT, _LARGEST_FLOAT, form="float", refusal=_NO_NUMBER)
PRESENCE = Truth(form="switch")
"""Of a flag without a value: it is there, or it is not."""


def one_of(*words: str) -> OneOf:
    """Return the kind of a flag that takes one of these words."""
    return OneOf(words, form="string", refusal='Bad option: "{name}".\ninvalid argument for {name}')


def read(flag: Setting, text: str) -> Any:
    """The value of a flag's text. INVALID, worded as in the original."""
    if fault := flag.fault(text):
        raise ServeError(Code.INVALID, fault)
    return flag.kind.read(text)
