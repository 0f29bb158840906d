"""Reads the text of a key file: which keys there are, what each may do, and until when.

The file has the digests of keys, never keys: who reads it cannot ask anything. No text of a fault repeats a value,
since somebody may have put a key where its digest belongs. Pure.
"""

import hashlib
import hmac
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import Any

from trivium.types.access import AccessScope
from trivium.types.errors import ConfigError
from trivium.types.findings import Finding, Severity

SCOPES: Mapping[str, AccessScope] = {
    scope.value: scope for scope in (AccessScope.INFER, AccessScope.OBSERVE, AccessScope.MANAGE)
}
"""Words of the file -> scopes."""

_FIELDS = ("name", "sha256", "scopes", "expires")
_HEADER = re.compile(r"^[ \t]*\[\[[ \t]*key[ \t]*\]\]", re.MULTILINE)
_DIGEST = re.compile(r"[0-9a-fA-F]{64}")


@dataclass(frozen=True, slots=True)
class AccessKey:
    """Describes a key: its name, the digest of its text, its scopes, and the time from which it is refused, in seconds
    of the epoch (None: never) and as it was written.
    """

    name: str
    digest: bytes
    scopes: frozenset[AccessScope]
    expires: float | None = None
    expires_text: str = ""


def digest_of(key: str) -> bytes:
    """Return the digest by which a key is known."""
    return hashlib.sha256(key.encode()).digest()


def find(shown: str, keys: Sequence[AccessKey]) -> AccessKey | None:
    """Return the key that this text is. How long it takes depends on neither."""
    digest, found = digest_of(shown), None
    for key in keys:
        if hmac.compare_digest(digest, key.digest):
            found = key
    return found


def parse_keys(text: str, file: str) -> tuple[AccessKey, ...]:
    """Read the keys. Raises ConfigError with all faults, each with its line and what to do."""
    try:
        document = tomllib.loads(text)
    except (ValueError, RecursionError) as error:  # the second is of arrays in arrays, without end
        found = f"not TOML: {error}"
        raise ConfigError((_fault(file, None, "", found, "tables [[key]]", "Correct that line."),)) from error
    lines = [text.count("\n", 0, match.end()) + 1 for match in _HEADER.finditer(text)]
    faults = [
        _fault(file, None, word, "no such table", "[[key]] alone", "Remove it.")
        for word in document
        if word != "key"
    ]
    rows = document.get("key", [])
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        faults.append(
            _fault(file, None, "key", "no list of tables", "[[key]]", "Write [[key]] above each key.")
        )
        rows = []
    elif not rows:
        faults.append(
            _fault(file, None, "key", "no key", "at least one [[key]]", "Run `trivium key` to make one.")
        )
    keys = []
    for i, row in enumerate(rows):
        wrong = [
            _fault(
                file, lines[i] if len(lines) == len(rows) else None, f"key[{i}].{field}", found, wanted, hint
            )
            for field, found, wanted, hint in _faults(row)
        ]
        faults += wrong
        keys += [] if wrong else [_key_of(row)]
    faults += _repeated(keys, file)
    if faults:
        raise ConfigError(tuple(faults))
    return tuple(keys)


def _faults(row: Mapping[str, Any]) -> Iterator[tuple[str, str, str, str]]:
    """Yield field, what was found, what was expected, and what to do."""
    for field in row:
        if field not in _FIELDS:
            yield field[:40], "no such field", ", ".join(_FIELDS), "Remove it."
    if not isinstance(row.get("name"), str) or not row["name"].isprintable() or not row["name"]:
        yield "name", "no name", "a text that can be printed", "Write whose key it is."
    digest = row.get("sha256")
    if not isinstance(digest, str) or not _DIGEST.fullmatch(digest):
        found = f"a text of {len(digest)} characters" if isinstance(digest, str) else "no text"
        yield (
            "sha256",
            found,
            "64 hexadecimal digits",
            "Put in what `trivium key` printed, not the key itself.",
        )
    scopes = row.get("scopes")
    if not isinstance(scopes, list) or not scopes or not all(scope in SCOPES for scope in map(str, scopes)):
        wanted = f"a list of {', '.join(SCOPES)}"
        yield "scopes", "no such list", wanted, 'Write what the key may do, like scopes = ["infer"].'
    if "expires" in row and not isinstance(row["expires"], date):  # a datetime is a date
        wanted = "a date, or a date with a time"
        yield "expires", "no date", wanted, "Write it without quotes, like expires = 2027-01-31."


def _key_of(row: Mapping[str, Any]) -> AccessKey:
    scopes = frozenset(SCOPES[scope] for scope in row["scopes"])
    digest, end = bytes.fromhex(row["sha256"]), row.get("expires")
    if end is None:
        return AccessKey(row["name"], digest, scopes)
    moment = end if isinstance(end, datetime) else datetime(end.year, end.month, end.day)
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return AccessKey(row["name"], digest, scopes, moment.timestamp(), moment.isoformat())


def _repeated(keys: list[AccessKey], file: str) -> Iterator[Finding]:
    names, digests = [key.name for key in keys], [key.digest for key in keys]
    for i, key in enumerate(keys):
        if key.name in names[:i]:
            hint = "Give each key a name of its own."
            yield _fault(file, None, f"key[{i}].name", "the name of another key", "", hint)
        if key.digest in digests[:i]:
            hint = "Keep one of the two; several scopes go into one list."
            yield _fault(file, None, f"key[{i}].sha256", "the digest of another key", "", hint)


def _fault(file: str, line: int | None, key: str, found: str, expected: str, hint: str) -> Finding:
    return Finding(Severity.ERROR, file, line, key, found, expected, hint)
