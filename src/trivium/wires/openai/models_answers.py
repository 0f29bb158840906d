"""Writes the list of the models that a chat or a completion can name, and one of them."""

from collections import Counter
from collections.abc import Sequence

from trivium.codecs.chat_answers import encode_json
from trivium.codecs.header_text import JSON, request_id_line
from trivium.types.adapters import SOURCE
from trivium.types.errors import Code, ServeError, unwritable
from trivium.types.operations import Listing, ModelDescription, ResponsePart, VersionStatus
from trivium.types.payload import PayloadKind
from trivium.types.spec import StandingCall
from trivium.types.state import VersionState
from trivium.types.wire import HttpAnswer
from trivium.wires.openai.errors import refuse

_OWNER = "trivium"
_NAMEABLE = frozenset({PayloadKind.GENERATE, PayloadKind.RAW})
"""What a model takes that a request of this API can name: a request to generate, or the body as it came."""


class ModelsEncoder:
    """Writes the list of the models that serve, or one of them. With `shows_all` also those that take tensors alone."""

    __slots__ = ("_created", "_id", "_model", "_shows_all")

    def __init__(self, request_id: str, created: int, model: str, shows_all: bool = False) -> None:
        self._id = request_id_line(request_id)
        self._created = created
        self._model = model
        self._shows_all = shows_all

    def encode(self, part: ResponsePart) -> HttpAnswer:
        """One whole answer."""
        if part.error is not None:
            return refuse(part.error, self._id)
        try:
            document = self._document(part)
        except Exception as error:
            return refuse(unwritable(error), self._id)
        return HttpAnswer(200, self._id + JSON, (document,), len(document))

    def _document(self, part: ResponsePart) -> bytes:
        answer = part.answer
        if isinstance(answer, Listing) and not self._model:
            found = self._entries([row for row in answer.versions if row.state is VersionState.READY])
            return encode_json({"object": "list", "data": [found[name] for name in sorted(found)]})
        if isinstance(answer, ModelDescription) and self._model:
            spec = answer.spec
            call = next((one for one in answer.standing if one.topic == self._model), None)
            if call is not None and self._model not in (spec.name, *spec.aliases):
                return encode_json(_with_readiness(self._adapter(call, spec.name, spec.context)))
            return encode_json(_with_readiness(self._entry(self._model, spec.name, spec.context)))
        raise ServeError(Code.INTERNAL, "The server did not say which models there are. Report it.")

    def _entries(self, rows: Sequence[VersionStatus]) -> dict[str, dict[str, object]]:
        """Return what is shown of each name; an alias that several models have is the name of none."""
        models = {row.model for row in rows}
        aliases = Counter(alias for row in rows if row.is_default for alias in row.aliases)
        found = {}
        adapted: list[tuple[StandingCall, VersionStatus]] = []
        for row in rows:
            if not (self._shows_all or not row.takes.isdisjoint(_NAMEABLE)):
                continue
            others = [one for one in row.aliases if aliases[one] == 1 and one not in models]
            for name in (row.model, *others):
                found[name] = self._entry(name, row.model, row.context)
            if row.is_default:
                adapted += [(call, row) for call in row.adapters]
        owners = Counter(call.topic for call, _ in adapted)
        for call, row in adapted:
            if owners[call.topic] == 1 and call.topic not in models and call.topic not in aliases:
                found[call.topic] = self._adapter(call, row.model, row.context)
        return found

    def _adapter(self, call: StandingCall, model: str, context: int) -> dict[str, object]:
        """Return what is shown of an adapter: its folder, and the model that it changes."""
        return self._entry(call.topic, call.properties.get(SOURCE, ""), context) | {"parent": _shown(model)}

    def _entry(self, name: str, model: str, context: int) -> dict[str, object]:
        told = {"id": _shown(name), "object": "model", "created": self._created, "owned_by": _OWNER}
        if not context:
            return told
        return {**told, "root": _shown(model), "parent": None, "max_model_len": context}


def _shown(text: str) -> str:
    return text.encode("utf-8", "backslashreplace").decode()


def _with_readiness(entry: dict[str, object]) -> dict[str, object]:
    """Return a model as OpenAI describes it, and as KServe's v1 protocol does, which asks at the same path."""
    return {**entry, "name": entry["id"], "ready": True}
