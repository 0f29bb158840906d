"""Reads the requests that manage a model's adapters, and writes their answers.

Source: spec sheet `djl`, section 5.4. Whether the model is there, and takes adapters, the core alone knows: a parameter
that is missing is refused behind its answer, in the order of the original.
"""

from collections.abc import Mapping
from typing import Any

import msgspec

from trivium.codecs.error_table import said
from trivium.codecs.error_texts import wire_text
from trivium.codecs.path_segments import decoded
from trivium.servers.djl.wire.errors import ILLEGAL, NO_NUMBER
from trivium.servers.djl.wire.management import PAGE, Decoded, Reader, refusing
from trivium.servers.djl.wire.management_answer import ManagementAnswer, Write
from trivium.servers.djl.wire.routes import DjlVerb
from trivium.settings.arguments import Arguments, VerbRow, page
from trivium.settings.setting import Setting
from trivium.types import adapters
from trivium.types.errors import Code, ServeError, anew
from trivium.types.operations import Broadcast, DescribeAll, ModelDescriptions, Remembered
from trivium.types.payload import Raw
from trivium.types.spec import StandingCall
from trivium.types.wire import Head, Target

_FILE = "file:"
_NAMED = (Setting("name"), Setting("src"))


class _Change(msgspec.Struct, frozen=True):
    """One change to an adapter: the function of the handler, that which undoes it, and what becomes of the call."""

    function: str
    undo: str
    remembered: Remembered
    become: str  # what has become of the adapter then


_CHANGES: Mapping[str, _Change] = {
    DjlVerb.ADAPTER_REGISTER: _Change(adapters.REGISTER, adapters.UNREGISTER, Remembered.ADDED, "registered"),
    DjlVerb.ADAPTER_UPDATE: _Change(adapters.UPDATE, adapters.UPDATE, Remembered.REPLACED, "updated"),
    DjlVerb.ADAPTER_UNREGISTER: _Change(
        adapters.UNREGISTER, adapters.REGISTER, Remembered.FORGOTTEN, "unregistered"
    ),
}


def _list(head: Head, target: Target, given: Arguments) -> Decoded:
    return DescribeAll(target.model), _listed(given.value("limit"), given.value("next_page_token"))


def _describe(head: Head, target: Target, given: Arguments) -> Decoded:
    return DescribeAll(target.model), _described(_named(head) or given.value("name"))


def _register(head: Head, target: Target, given: Arguments) -> Decoded:
    missing = next((row for row in given.rows if not given.value(row)), "")
    if missing:
        return DescribeAll(target.model), _refusing(_missing(missing))
    return _changed(target, given.value("name"), given)


def _change(head: Head, target: Target, given: Arguments) -> Decoded:
    return _changed(target, _named(head) or given.value("name"), given)


def _changed(target: Target, name: str, given: Arguments) -> Decoded:
    src, change = given.value("src"), _CHANGES[target.verb]
    if "://" in src and not src.lower().startswith(_FILE):
        return DescribeAll(target.model), _refusing(_elsewhere(src))
    if src.lower().startswith(_FILE):
        src = "/" + src[len(_FILE) :].lstrip("/")
    operation = Broadcast(
        target.model,
        change.function,
        adapters.payload(name, src, tuple(given.texts.items())),
        topic=name,
        remembered=change.remembered,
        later=adapters.REGISTER,
        undo=change.undo,
    )
    return operation, _done(name, change.become)


def _named(head: Head) -> str:
    """Return the adapter that the path names."""
    segments = head.path.split("/")
    return decoded(segments[segments.index("adapters", 1 if segments[1] == "adapters" else 3) + 1])


def _done(name: str, become: str) -> Write:
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
        calls, following = page(_calls(answer), limit, offset)
        return 200, {**following, "adapters": [_row(call) for call in calls]}

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


VERBS: Mapping[str, VerbRow[Reader]] = {
    DjlVerb.ADAPTER_REGISTER: VerbRow(_register, _NAMED),
    DjlVerb.ADAPTER_UPDATE: VerbRow(_change, _NAMED),
    DjlVerb.ADAPTER_UNREGISTER: VerbRow(_change, _NAMED),
    DjlVerb.ADAPTER_LIST: VerbRow(_list, PAGE, refusing(NO_NUMBER)),
    DjlVerb.ADAPTER_DESCRIBE: VerbRow(_describe, _NAMED),
}
"""What each verb does, and its arguments."""
