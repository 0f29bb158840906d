"""config.pbtxt text -> message, lines and findings: all faults of a file in one pass.

Our own reader is driven by the tables of `schema`, recovers after each fault and says what was expected;
protobuf's parser then reads the same text as the referee, and what it makes of it must be the same. Depth is
bounded by construction: only known blocks are descended into. Must not know what a key means.
"""

from typing import Any

from google.protobuf import text_format

from trivium.codecs.protobuf_schema import Field
from trivium.servers.triton.words.config_text import ConfigEntry, ConfigText
from trivium.servers.triton.words.literals import Unfit, expectation, value_of
from trivium.servers.triton.words.scope import Scope
from trivium.servers.triton.words.tokens import Cursor, Token, TokenKind
from trivium.types.findings import Change, Finding, Severity
from trivium.wires.v2.descriptor import new_config
from trivium.wires.v2.model_config import ModelConfigMessage
from trivium.wires.v2.schema import MESSAGES, fields_of, is_block

MAX_BYTES = 1 << 20
MAX_FINDINGS = 100


def read_config(file: str, data: bytes) -> ConfigText:
    """Read a whole file; never raises for what is in it."""
    if len(data) > MAX_BYTES:
        found, expected = "a file too large to be a configuration", f"at most {MAX_BYTES} bytes"
        size = Finding(Severity.ERROR, file, 1, "", found, expected, "Look whether this is the right file.")
        return ConfigText(file, findings=(size,))
    text, findings = _decode(file, data)
    reader = _Reader(file, text, findings)
    reader.read()
    if all(finding.severity is Severity.NOTICE for finding in findings):
        findings += _objections(file, text, reader.config)
    return ConfigText(file, reader.config, reader.entries, tuple(findings))


def _decode(file: str, data: bytes) -> tuple[str, list[Finding]]:
    findings = []
    if data.startswith(b"\xef\xbb\xbf"):
        data = data[3:]
        found, hint = "a byte-order mark before the text", "Save the file as UTF-8 without a byte-order mark."
        findings.append(Finding(Severity.ERROR, file, 1, "", found, "plain UTF-8 text", hint))
    try:
        return data.decode(), findings
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        found, hint = f"the byte 0x{data[error.start]:02X}, which is not UTF-8", "Save the file as UTF-8."
        findings.append(Finding(Severity.ERROR, file, line, "", found, "UTF-8 text", hint))
        return data.decode(errors="replace"), findings


def _objections(file: str, text: str, config: ModelConfigMessage) -> list[Finding]:
    """Return the objections of protobuf's own parser, the referee, to the text or to our reading of it."""
    try:
        theirs = text_format.Parse(text, new_config())
    except text_format.ParseError as error:
        line, found, hint = error.GetLine() or 1, str(error), "Correct the line."
        return [Finding(Severity.ERROR, file, line, "", found, "protobuf text format", hint)]
    if theirs.SerializeToString(deterministic=True) == config.SerializeToString(deterministic=True):
        return []
    found, hint = (
        "text that protobuf's parser reads otherwise than this one",
        "Write it more plainly, and report it.",
    )
    return [Finding(Severity.ERROR, file, 1, "", found, "one meaning", hint)]


class _TooMany(Exception):
    """The file has more faults than anybody reads."""


class _Reader:
    """A recursive descent over the tokens."""

    def __init__(self, file: str, text: str, findings: list[Finding]) -> None:
        self.config = new_config()
        self.entries: dict[str, ConfigEntry] = {}
        self._file = file
        self._findings = findings
        self._at = Cursor(text)

    def read(self) -> None:
        try:
            self._read_fields(Scope("ModelConfig", MESSAGES["ModelConfig"], "", self.config), "")
        except _TooMany:
            found, hint = "more faults than are listed here", "Mend these, then check again."
            self._findings.append(
                Finding(Severity.ERROR, self._file, self._at.token.line, "", found, "", hint)
            )

    # -- blocks --------------------------------------------------------------------------------------------

    def _read_fields(self, scope: Scope, closer: str) -> None:
        """All fields up to the closing brace, which is consumed; without one up to the end of the file."""
        while not self._at.at_end:
            if self._at.token.closes:
                token = self._at.advance()
                if token.text != closer:
                    self._fault(scope.path, *scope.wrong_close(token, closer), token.line)
                if closer:
                    return
            else:
                self._read_field(scope)
        if closer:
            self._fault(scope.path, *scope.never_closed(closer), scope.line)

    def _read_field(self, scope: Scope) -> None:
        token = self._at.token
        if token.kind not in (TokenKind.WORD, TokenKind.NUMBER):
            self._fault(scope.path, str(token), f"the name of a field of {scope}", "Remove it.", token.line)
            self._at.skip_value()
            return
        self._at.advance()
        known = scope.fields.get(token.text)
        if known is None:
            self._skip_unknown(scope, token)
        else:
            self._read_known(scope, known, token.line)
        if not self._at.accept(","):
            self._at.accept(";")

    def _skip_unknown(self, scope: Scope, token: Token) -> None:
        near, words = scope.unknown_field(token.text)
        mends = (Change(name=near),) if near else ()
        self._fault(scope.key(token.text), *words, token.line, mends)
        if near:
            self.entries.setdefault(scope.key(near), ConfigEntry(token.line))
        if (self._at.accept(":") and not self._value_is_missing(scope)) or self._at.token.opens:
            self._at.skip_value()

    def _read_known(self, scope: Scope, known: Field, line: int) -> None:
        key = scope.key(known.name)
        self.entries.setdefault(key, ConfigEntry(line))
        token = self._at.token
        if not self._at.accept(":") and not is_block(known):
            self._fault(
                key, f"{token} after {known.name}", "`:`", f"Write {known.name}: and its value.", line
            )
            if token.kind not in (TokenKind.NUMBER, TokenKind.STRING) and not token.opens:
                return
        if known.is_list and self._at.accept("["):
            self._read_list(scope, known)
        else:
            self._read_one(scope, known, line)

    def _read_list(self, scope: Scope, known: Field) -> None:
        key = scope.key(known.name)
        opened = self._at.token.line
        while not self._at.at_end and not self._at.token.closes:
            first = self._at.token
            self._read_one(scope, known, first.line)
            token = self._at.token
            if self._at.accept(","):
                if self._at.token.text == "]":
                    self._fault(
                        key, "`,` before `]`", "a value between the two", "Remove the comma.", token.line
                    )
            elif token is first or (token.kind is TokenKind.MARK and token.text not in "{<"):
                break
            else:
                self._fault(key, str(token), "`,` or `]`", "Put a comma between the values.", token.line)
        if not self._at.accept("]"):
            found = f"{self._at.token} in the list {known.name} opened on line {opened}"
            self._fault(key, found, "`]`", "Close the list with `]`.", self._at.token.line)

    def _read_one(self, scope: Scope, known: Field, line: int) -> None:
        key = scope.next_key(known)
        clash = scope.clash(known)
        if clash:
            self._fault(key, *clash, line)
        elif known.name in scope.given and not known.is_list:
            self._notice(key, f"{known.name} a second time; the last one holds", line)
        if not is_block(known):
            self._read_scalar(scope, known, key, line)
        elif self._at.token.kind is TokenKind.MARK and self._at.token.text in "{<":
            self._read_block(scope, known, key, line)
        else:
            found, hint = str(self._at.token), f"Write {known.name} {{ ... }}."
            self._fault(key, found, expectation(known), hint, self._at.token.line)
            if not self._value_is_missing(scope):
                self._at.skip_value()

    def _read_block(self, scope: Scope, known: Field, key: str, line: int) -> None:
        type_, fields = fields_of(scope.type, known)
        scope.given.setdefault(known.name, None)
        inside = Scope(type_, fields, key, _open(scope.message, known), line)
        self.entries[key] = ConfigEntry(line, type=type_)
        self._read_fields(inside, "}" if self._at.advance().text == "{" else ">")
        if known.map_key:
            entry = inside.message
            entries = getattr(scope.message, known.name)
            if entry.key in entries:
                self._notice(key, f"the key {entry.key!r} a second time; the last one holds", line)
            if known.type in MESSAGES:
                entries[entry.key].CopyFrom(entry.value)
            else:
                entries[entry.key] = entry.value

    # -- values --------------------------------------------------------------------------------------------

    def _read_scalar(self, scope: Scope, known: Field, key: str, line: int) -> None:
        first = self._at.token
        if self._value_is_missing(scope) or first.opens:
            found = f"{first} where the value of {known.name} should be"
            hint = f"Write {known.name}: and one value."
            self._fault(key, found, expectation(known), hint, line)
            if first.opens:
                self._at.skip_value()
            return
        try:
            value = value_of(known, self._at.strings())
        except Unfit as unfit:
            mends = (Change(value=unfit.value),) if unfit.value else ()
            self._fault(key, unfit.found, unfit.expected, unfit.hint, first.line, mends)
            return
        scope.given[known.name] = value
        self.entries[key] = ConfigEntry(line, value)
        if known.is_list:
            getattr(scope.message, known.name).append(value)
        else:
            setattr(scope.message, known.name, value)

    def _value_is_missing(self, scope: Scope) -> bool:
        """Does something else stand where a value should: a brace's end, or the name of the next field?"""
        token = self._at.token
        if token.kind in (TokenKind.MARK, TokenKind.END):
            return not token.opens
        return token.text in scope.fields and self._at.following.text in (":", "{", "<")

    # -- findings ------------------------------------------------------------------------------------------

    def _fault(
        self, key: str, found: str, expected: str, hint: str, line: int, mends: tuple[Change, ...] = ()
    ) -> None:
        self._add(Finding(Severity.ERROR, self._file, line, key, found, expected, hint, mends=mends))

    def _notice(self, key: str, found: str, line: int) -> None:
        self._add(
            Finding(Severity.NOTICE, self._file, line, key, found, hint="Remove the one that is wrong.")
        )

    def _add(self, finding: Finding) -> None:
        self._findings.append(finding)
        if len(self._findings) >= MAX_FINDINGS:
            raise _TooMany


def _open(message: Any, known: Field) -> Any:
    """The message that a block fills; an entry of a map is stored when it is whole."""
    held = getattr(message, known.name)
    if known.map_key:
        return held.GetEntryClass()()
    if known.repeated:
        return held.add()
    held.SetInParent()
    return held
