"""The arguments of one request by which models are managed, read by the rows of what it asks for. Pure."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from trivium.codecs.flat_arguments import read_arguments
from trivium.settings.kinds import Integer
from trivium.settings.setting import Setting
from trivium.types.described import TEXT, WHOLE, DescribedArgument
from trivium.types.errors import ServeError
from trivium.types.sources import SourceSetting
from trivium.types.spec import Origin
from trivium.types.wire import Body, Head

Refuse = Callable[[Setting, str], ServeError]
"""Makes the error for a value that cannot be."""

MOST_LISTED = 100
"""Rows of a listing's page, at most."""

_REQUEST = "the request"
Row = TypeVar("Row")
Reader = TypeVar("Reader")


@dataclass(frozen=True, slots=True)
class Arguments:
    """Holds what a request gives for its rows. An empty text counts as not given."""

    rows: Mapping[str, Setting]  # by name
    texts: Mapping[str, str]  # as they were sent, others among them
    refuse: Refuse | None = None  # for a value that cannot be; without it that counts as not given

    @classmethod
    def of(
        cls, rows: Iterable[Setting], texts: Mapping[str, str], refuse: Refuse | None = None
    ) -> "Arguments":
        """Make them of the rows that there are."""
        return cls({row.name: row for row in rows}, texts, refuse)

    def value(self, name: str) -> Any:
        """The value of an argument as its kind reads it, or its default."""
        row, text = self.rows[name], self.texts.get(name, "")
        if not text:
            return row.default
        try:
            value = row.kind.read(text)
        except ValueError as error:
            if self.refuse is not None:
                raise self.refuse(row, text) from error
            value = None
        return row.default if value is None else value

    def over(self, keys: Mapping[str, str]) -> dict[str, SourceSetting]:
        """Return the settings of a model that lie over those of its files: argument -> key, where it is given."""
        values = ((name, key, self.value(name)) for name, key in keys.items())
        return {key: asked(name, str(value)) for name, key, value in values if value not in (None, "")}


@dataclass(frozen=True, slots=True)
class VerbRow(Generic[Reader]):
    """One thing that is done to models: what makes an operation of a request for it, and its arguments."""

    read: Reader
    arguments: tuple[Setting, ...] = ()
    refuse: Refuse | None = None  # as that of `Arguments`
    example: str = ""  # of a JSON body, where it may have one

    def texts(self, head: Head, body: Body) -> dict[str, str]:
        """Return what a request over HTTP gives, by name. INVALID for what cannot be read."""
        return read_arguments(head, body, self.example)

    def given(self, texts: Mapping[str, str]) -> Arguments:
        """Return the arguments that are among these."""
        return Arguments.of(self.arguments, texts, self.refuse)


def told(row: VerbRow[Any]) -> tuple[DescribedArgument, ...]:
    """Describe the arguments of a row to programs."""
    return tuple(
        DescribedArgument(one.name, WHOLE if isinstance(one.kind, Integer) else TEXT, one.help)
        for one in row.arguments
    )


def asked(name: str, value: str) -> SourceSetting:
    """Return a setting that a request asks for by an argument."""
    return SourceSetting(value, Origin(_REQUEST, name))


def page(
    rows: Sequence[Row], limit: int, offset: int, names_end: bool = False
) -> tuple[Sequence[Row], dict[str, str]]:
    """Return the rows of a page, and the member that names the next one; with `names_end` also where that is empty, but
    begins right behind the last row.
    """
    end = offset + limit
    return rows[offset:end], {"nextPageToken": str(end)} if end < len(rows) + names_end else {}
