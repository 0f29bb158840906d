"""Reads the requests that manage a model's adapters, and writes their answers.

Source: spec sheet `djl`, section 5.4. Whether the model is there, and takes adapters, the core alone knows: a parameter
that is missing is refused behind its answer, in the order of the original.
"""

from collections.abc import Mapping
from typing import Any

from trivium.codecs.error_table import said
from trivium.codecs.error_texts import wire_text
from trivium.codecs.path_segments import decoded
from trivium.servers.djl.wire.errors import ILLEGAL
from trivium.servers.djl.wire.management import MOST_LISTED, Parameters, parameters_of
from trivium.servers.djl.wire.management_answer import ManagementAnswer, ManagementEncoder, Write
from trivium.servers.djl.wire.routes import DjlVerb
from trivium.servers.djl.words import adapters
from trivium.types.errors import Code, ServeError, anew
from trivium.types.operations import Broadcast, DescribeAll, ModelDescriptions, Operation, Remembered
from trivium.types.payload import Raw
from trivium.types.spec import StandingCall
from trivium.types.wire import Body, Head, Target

_FILE = "file:"
VERBS: Mapping[DjlVerb, str] = {
    DjlVerb.ADAPTER_REGISTER: "registered",
    DjlVerb.ADAPTER_UPDATE: "updated",
    DjlVerb.ADAPTER_UNREGISTER: "unregistered",
    DjlVerb.ADAPTER_LIST: "",
    DjlVerb.ADAPTER_DESCRIBE: "",
}
"""Verbs of this module, and what has become of an adapter then."""


def decode_adapters(
    head: Head, target: Target, body: Body, request_id: str, exact: bool
) -> tuple[Operation, ManagementEncoder]:
    """The operation of a target with one of these verbs, and the encoder for its answer. INVALID."""
    pairs = parameters_of(head, target, body)
    given = Parameters(pairs, exact)
    verb = DjlVerb(target.verb)
    operation, write = _decoded(
        verb, given, target, _named(head, verb) or given.text("name"), tuple(pairs.items())
    )
    return operation, ManagementEncoder(request_id, write, exact)


def _decoded(
    verb: DjlVerb, given: Parameters, target: Target, name: str, pairs: tuple[tuple[str, str], ...]
) -> tuple[Operation, Write]:
    asked = DescribeAll(target.model)
    if verb is DjlVerb.ADAPTER_LIST:
        limit, offset = given.number("limit", MOST_LISTED), given.number("next_page_token", 0)
        return asked, _listed(limit if 1 <= limit <= MOST_LISTED else MOST_LISTED, max(offset, 0))
    if verb is DjlVerb.ADAPTER_DESCRIBE:
        return asked, _described(name)
    src = given.text("src")
    if verb is DjlVerb.ADAPTER_REGISTER:
        missing = "name" if not name else "src" if not src else ""
        if missing:
            return asked, _refusing(_missing(missing))
    if "://" in src and not src.lower().startswith(_FILE):
        return asked, _refusing(_elsewhere(src))
    if src.lower().startswith(_FILE):
        src = "/" + src[len(_FILE) :].lstrip("/")
    return _change(verb, target.model, name, adapters.payload(name, src, pairs)), _changed(name, VERBS[verb])


def _named(head: Head, verb: DjlVerb) -> str:
    """Return the adapter that the path names; empty where the parameters do."""
    segments = head.path.split("/")
    if verb in (DjlVerb.ADAPTER_REGISTER, DjlVerb.ADAPTER_LIST):
        return ""
    return decoded(segments[segments.index("adapters", 1 if segments[1] == "adapters" else 3) + 1])


def _change(verb: DjlVerb, model: str, name: str, payload: Raw) -> Broadcast:
    match verb:
        case DjlVerb.ADAPTER_REGISTER:
            function, undo, remembered = adapters.REGISTER, adapters.UNREGISTER, Remembered.ADDED
        case DjlVerb.ADAPTER_UPDATE:
            function, undo, remembered = adapters.UPDATE, adapters.UPDATE, Remembered.REPLACED
        case _:
            function, undo, remembered = adapters.UNREGISTER, adapters.REGISTER, Remembered.FORGOTTEN
    return Broadcast(
        model,
        function,
        payload,
        topic=name,
        remembered=remembered,
        later=adapters.REGISTER,
        undo=undo,
    )


def _changed(name: str, become: str) -> Write:
    """It says what the handler says, or that it is done."""

    def write(answer: ManagementAnswer) -> tuple[int, object]:
        said = answer.reason if isinstance(answer, Raw) else ""
        done = f"Adapter {wire_text(name)} {become}"
        return 200, {"status": done if said in ("", "OK", "No content") else wire_text(said)}

    return write


def _refusing(error: ServeError) -> Write:
    def write(answer: ManagementAnswer) -> tuple[int, object]:
        _calls(answer)
        raise anew(error)

    return write


def _listed(limit: int, offset: int) -> Write:
    def write(answer: ManagementAnswer) -> tuple[int, object]:
        calls = _calls(answer)
        following = {"nextPageToken": str(offset + limit)} if offset + limit < len(calls) else {}
        return 200, {**following, "adapters": [_row(call) for call in calls[offset : offset + limit]]}

    return write


def _described(name: str) -> Write:
    def write(answer: ManagementAnswer) -> tuple[int, object]:
        for call in _calls(answer):
            if call.topic == name:
                return 200, _row(call)
        raise said(
            Code.NOT_FOUND,
            f"The adapter {wire_text(name)} has not been registered. GET the path without it lists those that have.",
            f"The adapter {wire_text(name)} has not been registered",
        )

    return write


def _calls(answer: ManagementAnswer) -> tuple[StandingCall, ...]:
    """Return the adapters of a model. Raises INVALID for one that takes none."""
    assert isinstance(answer, ModelDescriptions), answer
    if not answer.models:
        raise said(
            Code.NOT_READY,
            "The model is not ready: it is being loaded, or failed to. GET /models says which.",
        )
    model = next((one for one in answer.models if one.spec.version == one.default), answer.models[0])
    if adapters.REGISTER not in model.spec.functions:
        raise said(
            Code.INVALID,
            f"Model '{model.spec.name}' takes no adapters. Write option.enable_lora=true into its serving.properties, "
            f"and {', '.join(adapters.FUNCTIONS)} into its handler.",
            "LoRA is not enabled.",
        )
    return model.standing


def _row(call: StandingCall) -> dict[str, Any]:
    said = dict(call.arguments)
    return {
        "name": wire_text(call.topic),
        "src": wire_text(call.properties.get("src", "")),
        "preload": said.get("preload", "true").lower() == "true",
        "pin": said.get("pin", "false").lower() == "true",
    }


def _missing(name: str) -> ServeError:
    return said(
        Code.INVALID,
        f"The parameter {name} is missing; expected are name=NAME and src=FOLDER.",
        f"The parameter {name} is required",
    )


def _elsewhere(src: str) -> ServeError:
    return said(
        Code.CONFLICT,
        f"src={wire_text(src[:200])} is no folder of this machine; expected is a path, also as file:. Download it.",
        reason=ILLEGAL,
    )
