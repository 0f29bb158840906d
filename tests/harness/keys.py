"""Makes files of keys, and shows keys as clients do."""

from dataclasses import dataclass
from pathlib import Path

from trivium.access.keys import digest_of

SCOPES = ("infer", "observe", "manage")


@dataclass(frozen=True)
class MadeKey:
    """A key, in the clear, and what its file says of it."""

    name: str
    text: str
    scopes: tuple[str, ...]
    expires: str = ""

    @property
    def header(self) -> bytes:
        """The header line that shows it."""
        return b"Authorization: Bearer " + self.text.encode() + b"\r\n"

    @property
    def metadata(self) -> tuple[tuple[str, str], ...]:
        """The same over gRPC."""
        return (("authorization", f"Bearer {self.text}"),)

    @property
    def table(self) -> str:
        """What the file has of it."""
        scopes = ", ".join(f'"{scope}"' for scope in self.scopes)
        end = f"expires = {self.expires}\n" if self.expires else ""
        return f'[[key]]\nname = "{self.name}"\nsha256 = "{digest_of(self.text).hex()}"\nscopes = [{scopes}]\n{end}'


KEYS = {scope: MadeKey(scope, f"key-that-may-{scope}-0123456789", (scope,)) for scope in SCOPES}
EXPIRED = MadeKey("expired", "key-that-has-expired-0123456789", SCOPES, "2020-01-01")
WRONG = MadeKey("wrong", "key-of-nobody-0123456789", SCOPES)


def key_file(path: Path, *keys: MadeKey) -> Path:
    """A file with these keys; with a key for each scope and an expired one, if none is given."""
    path.write_text("".join(key.table for key in keys or (*KEYS.values(), EXPIRED)))
    return path
