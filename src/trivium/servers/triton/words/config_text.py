"""A config.pbtxt as read: the message, where each key stands, and what is wrong with it.

Keys are dotted paths in the file's own words; blocks and values of a list have an index: `input[0].dims[1]`,
`parameters[1].key`. Must not know what a key means.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from trivium.types.findings import Change, Finding, Severity
from trivium.wires.v2.descriptor import new_config
from trivium.wires.v2.model_config import ModelConfigMessage


@dataclass(frozen=True, slots=True)
class ConfigEntry:
    """One key of the file: its line, and its value as read; for a block, `type` names its message and the
    value is None, as it is where the key was tried in vain.
    """

    line: int
    value: object = None
    type: str = ""


@dataclass(frozen=True, slots=True)
class ConfigText:
    """A file as the reader understood it. Where there is no file, `file` names the folder and there are no lines.

    `config` is whole only if no finding is an error.
    """

    file: str
    config: ModelConfigMessage = field(default_factory=new_config)
    entries: Mapping[str, ConfigEntry] = field(default_factory=dict)
    findings: tuple[Finding, ...] = ()
    exists: bool = True

    @property
    def has_errors(self) -> bool:
        return any(finding.severity is Severity.ERROR for finding in self.findings)

    def line(self, key: str) -> int | None:
        """Return the line of the key, else of the innermost block around it; for a missing key of the file itself,
        1.
        """
        while key and key not in self.entries:
            key = key.rpartition(".")[0]
        if key:
            return self.entries[key].line
        return 1 if self.exists else None

    def blocks(self, type_: str) -> Iterator[str]:
        """The keys of all blocks of a message type, in the order of the file."""
        return (key for key, entry in self.entries.items() if entry.type == type_)

    def fault(self, key: str, found: str, expected: str, hint: str, *mends: Change) -> Finding:
        """An error at the key, with the changes that its hint names."""
        return Finding(Severity.ERROR, self.file, self.line(key), key, found, expected, hint, mends=mends)

    def notice(
        self, key: str, found: str, expected: str = "", hint: str = "", mends: tuple[Change, ...] = ()
    ) -> Finding:
        """Something to know about the key."""
        return Finding(Severity.NOTICE, self.file, self.line(key), key, found, expected, hint, mends=mends)
