"""Findings: what `trivium check` and a load have to say about one place in a file: a fault, or something to know."""

from dataclasses import dataclass, field
from enum import Enum

from trivium.types.error_info import ErrorInfo


class Severity(Enum):
    """ERROR refuses the model; NOTICE is something of an operator's that is read and not served, or passed on; REMARK
    is what a model file lets be known, and asks nothing of anybody.
    """

    ERROR = "error"
    NOTICE = "notice"
    REMARK = "remark"


@dataclass(frozen=True, slots=True)
class Change:
    """One change of a file that a hint names: another name for a key, another value, or, without both, no such key.

    `key` is written as a finding's is; empty for the finding's own. `value` is what the file says, quotes and all.
    """

    key: str = ""
    name: str = ""
    value: str | None = None


@dataclass(frozen=True, slots=True)
class Finding:
    """One fault or notice: where (file, line from 1 or None, key), what was found, expected, and the hint.

    `key` is the dotted path in the file's own words, with indexes for repeated blocks: `input[0].dims`. `info` says
    the same in a form for programs, for wires that have texts of their own. The hint names the changes `mends`.
    """

    severity: Severity
    file: str
    line: int | None
    key: str
    found: str
    expected: str = ""
    hint: str = ""
    info: ErrorInfo | None = field(default=None, compare=False, repr=False)
    mends: tuple[Change, ...] = field(default=(), compare=False, repr=False)

    def __str__(self) -> str:
        place = self.file if self.line is None else f"{self.file}:{self.line}"
        text = f"{place}: {self.key}: {self.found}" if self.key else f"{place}: {self.found}"
        if self.expected:
            text += f"; expected {self.expected}"
        return f"{text}. {self.hint}" if self.hint else text
