"""The description of the listener for programs: made anew when other models serve, and kept until then."""

from collections.abc import Callable, Sequence

from trivium.codecs.header_text import JSON
from trivium.types.errors import Code, ServeError, unwritable
from trivium.types.operations import ResponsePart, ServedModels
from trivium.types.spec import ModelSpec
from trivium.types.wire import HttpAnswer, costly
from trivium.wires.operate.errors import GUARDS, refuse
from trivium.wires.operate.page import is_known, tag_of

_FIELDS = JSON + b"Cache-Control: no-cache\r\n" + GUARDS


class KeptDescription:
    """Keeps the last document that `describe` made, by the models in it. Used from any thread."""

    def __init__(self, describe: Callable[[Sequence[ModelSpec]], bytes]) -> None:
        self._describe = describe
        self._kept: tuple[tuple[ModelSpec, ...], bytes, bytes] | None = None

    def find(self, specs: tuple[ModelSpec, ...]) -> tuple[bytes, bytes] | None:
        """Return the document with these models, and its tag; None where it is not the kept one."""
        kept = self._kept
        if kept is None or len(kept[0]) != len(specs):
            return None
        is_same = all(one is other for one, other in zip(kept[0], specs, strict=True))
        return kept[1:] if is_same else None

    def make(self, specs: tuple[ModelSpec, ...]) -> tuple[bytes, bytes]:
        """Make the document with these models, and its tag, and keep them. It may take long."""
        document = self._describe(specs)
        found = document, tag_of(document)
        self._kept = specs, *found
        return found


class DescriptionEncoder:
    """Writes the document, or that the client has it: `known` are the tags that it names."""

    __slots__ = ("_kept", "_known")

    def __init__(self, kept: KeptDescription, known: bytes) -> None:
        self._kept = kept
        self._known = known

    def encode(self, part: ResponsePart) -> HttpAnswer:
        """See `types.interfaces.Encoder`."""
        if part.error is not None:
            return refuse(part.error)
        if not isinstance(part.answer, ServedModels):
            return refuse(ServeError(Code.INTERNAL, "The server did not say which models serve. Report it."))
        specs = part.answer.specs
        found = self._kept.find(specs)
        return self._written(*found) if found is not None else costly(lambda: self._made(specs))

    def _made(self, specs: tuple[ModelSpec, ...]) -> HttpAnswer:
        try:
            return self._written(*self._kept.make(specs))
        except Exception as error:
            return refuse(unwritable(error))

    def _written(self, document: bytes, tag: bytes) -> HttpAnswer:
        fields = _FIELDS + b"ETag: %b\r\n" % tag
        if is_known(tag, self._known):
            return HttpAnswer(304, fields, (), 0)
        return HttpAnswer(200, fields, (document,), len(document))
