"""Reads the requests that manage TorchServe's models, over HTTP and gRPC alike: as operations, with what writes their
answers.

Source: spec sheet `torchserve`, sections 5 and 7. What becomes of a wish the core decides.
"""

from collections.abc import Callable, Mapping

import msgspec

from trivium.codecs.error_texts import not_from_here, wire_text
from trivium.servers.torchserve.wire import management_answer as answers
from trivium.servers.torchserve.wire.management_errors import (
    Act,
    Wish,
    invalid,
    missing,
    model_api_off,
    worded,
)
from trivium.servers.torchserve.wire.management_options import ManagementOptions
from trivium.servers.torchserve.wire.management_routes import ManagementVerb as Verb
from trivium.settings.arguments import MOST_LISTED, Arguments, VerbRow, asked
from trivium.settings.kinds import JAVA_SWITCH, Integer
from trivium.settings.setting import Setting
from trivium.types import reasons
from trivium.types.error_info import ErrorInfo
from trivium.types.errors import Code, ServeError
from trivium.types.operations import (
    DESCRIBE,
    DescribeAll,
    Infer,
    List,
    Operation,
    Register,
    Scale,
    SetDefault,
    Unregister,
)
from trivium.types.payload import Raw
from trivium.types.registered_names import unfit_name
from trivium.types.sources import ModelSource

_ALL = "all"
_RUNTIMES = ("python", "python3", "lsp")
_OVER = ("batch_size", "max_batch_delay", "response_timeout", "startup_timeout", "handler", "runtime")
"""Arguments of a registration that are settings of the model under the same name."""


class FramedRequest(msgspec.Struct, frozen=True):
    """A request as HTTP and gRPC frame it: the verb, the model and the arguments, as text. A worker that describes
    itself sees the header fields that `shown` returns.
    """

    verb: Verb
    model: str
    version: str
    arguments: Mapping[str, str]
    request_id: str
    shown: Callable[[], Mapping[str, str]] = dict


class ManagementRequest(msgspec.Struct, frozen=True):
    """An operation, what it stands for in errors, and what writes its answer."""

    operation: Operation
    wish: Wish
    write: answers.Write
    reason: bytes | None = None


Reader = Callable[[FramedRequest, Arguments, ManagementOptions], ManagementRequest]


def read_management(request: FramedRequest, options: ManagementOptions) -> ManagementRequest:
    """Return what a request asks for. Raises ServeError."""
    row = VERBS[request.verb]
    return row.read(request, row.given(request.arguments), options)


def _register(request: FramedRequest, given: Arguments, options: ManagementOptions) -> ManagementRequest:
    """A registration. METHOD where the model API is off, else as `ModelStore.place`."""
    _check_may_change(options, registers=True)
    url, name, runtime = given.value("url"), given.value("model_name"), given.value("runtime")
    if "url" not in given.texts:
        raise missing("url", "Give the name of a model in the store, such as url=model.mar.")
    if name and (why := unfit_name(name)):
        raise invalid("Invalid model_name.", f"It {why}. Give another one.")
    if runtime and runtime.lower() not in _RUNTIMES:
        raise invalid(f"Invalid RuntimeType value: {runtime[:80]}", "Give python, or leave it out.")
    if given.value("s3_sse_kms"):
        raise ServeError(
            Code.UNSUPPORTED,
            "s3_sse_kms: signed requests for https:// URLs of S3 are not supported in this version. Give the URL as "
            "s3://BUCKET/KEY, which is signed with the keys of the environment.",
        )
    wish = Wish(Act.REGISTER, name, url=url)
    try:
        place = options.store.place(url)
    except ServeError as error:
        raise worded(error, wish) from error
    workers = given.value("initial_workers")
    workers = options.workers if workers is None else workers
    over = given.over({key: key for key in _OVER})
    over["initial_workers"] = asked("initial_workers", str(max(workers, 0)))
    source = ModelSource(place, name, over=over, within=options.store.bounds(url))
    is_awaited = given.value("synchronous")
    operation = Register(source, is_awaited, keeps_default=True)
    wish = msgspec.structs.replace(wish, is_remote=source.is_remote)
    return ManagementRequest(operation, wish, answers.registered(source, is_awaited))


def _list(request: FramedRequest, given: Arguments, options: ManagementOptions) -> ManagementRequest:
    """A page of the models, from the one with the number `next_page_token` on."""
    write = answers.listed(given.value("limit"), given.value("next_page_token"), options.store.shown)
    return ManagementRequest(List(), Wish(Act.LIST), write)


def _describe(request: FramedRequest, given: Arguments, options: ManagementOptions) -> ManagementRequest:
    """A description of the default version, of one, or of all. One that is customized asks a worker, too."""
    model, version, shown = request.model, request.version, options.store.shown
    wish = Wish(Act.DESCRIBE, model, version)
    _check_named(wish)
    if version == _ALL:
        return ManagementRequest(DescribeAll(model), wish, answers.described(shown, is_all=True))
    if not given.value("customized"):
        return ManagementRequest(DescribeAll(model, version), wish, answers.described(shown))
    payload = Raw((), request.shown(), path=None)
    run = Infer(model, payload, version, request.request_id, method=DESCRIBE, alone=True)
    write = answers.described(shown, is_customized=True)
    return ManagementRequest(DescribeAll(model, version, run), wish, write, b"")


def _ready(request: FramedRequest, given: Arguments, options: ManagementOptions) -> ManagementRequest:
    """A question of KServe's v1: has the model workers?"""
    model = request.model
    return ManagementRequest(DescribeAll(model), Wish(Act.DESCRIBE, model), answers.ready(model))


def _scale(request: FramedRequest, given: Arguments, options: ManagementOptions) -> ManagementRequest:
    """Other bounds for a version; without `max_worker` exactly the least. INVALID for bounds that cannot be."""
    _check_may_change(options)
    model, version = request.model, request.version or given.value("model_version")
    wish = Wish(Act.SCALE, model, version)
    _check_named(wish)
    least, most, waits = (given.value(name) for name in ("min_worker", "max_worker", "synchronous"))
    top = least if most is None else most
    if top < least:
        raise invalid(
            "max_worker cannot be less than min_worker.",
            f"max_worker is {top} and min_worker {least}. Give a greatest number that is not below the least.",
        )
    if least < 0:
        raise invalid(
            "", f"min_worker is {least}; a model has no fewer workers than 0, with which it serves nothing."
        )
    operation = Scale(model, least, top, version, wait=waits)
    return ManagementRequest(operation, wish, answers.scaled(model, version, least, waits))


def _set_default(request: FramedRequest, given: Arguments, options: ManagementOptions) -> ManagementRequest:
    """A choice of the version that serves requests which name none."""
    _check_may_change(options)
    model, version = request.model, request.version
    wish = Wish(Act.SET_DEFAULT, model, version)
    _check_named(wish)
    text = f'Default version successfully updated for model "{wire_text(model)}" to "{wire_text(version)}"'
    return ManagementRequest(SetDefault(model, version), wish, answers.status(text))


def _unregister(request: FramedRequest, given: Arguments, options: ManagementOptions) -> ManagementRequest:
    """An end of a version, or of the default one. METHOD where the model API is off."""
    _check_may_change(options, registers=True)
    model, version = request.model, request.version
    operation = Unregister(model, version, spares_default=True)
    text = f'Model "{wire_text(model)}" unregistered'
    return ManagementRequest(operation, Wish(Act.UNREGISTER, model, version), answers.status(text))


def _check_named(wish: Wish) -> None:
    """Raise what the original says of a model that there is not, where none is named: no other is taken for it."""
    if not wish.model:
        error = ServeError(
            Code.NOT_FOUND,
            "The request names no model. Set its model_name.",
            info=ErrorInfo.of(reasons.UNKNOWN_MODEL, model=""),
        )
        raise worded(error, wish)


def _check_may_change(options: ManagementOptions, registers: bool = False) -> None:
    if registers and not options.registers:
        raise model_api_off()
    if not options.may_change:
        raise not_from_here()


_FROM_ONE = Integer(1)
VERBS: Mapping[Verb, VerbRow[Reader]] = {
    Verb.REGISTER: VerbRow(
        _register,
        (
            Setting("url"),
            Setting("model_name"),
            Setting("handler"),
            Setting("runtime"),
            Setting("batch_size", _FROM_ONE, None),
            Setting("max_batch_delay", Integer(0), None),
            Setting("response_timeout", _FROM_ONE, None),
            Setting("startup_timeout", _FROM_ONE, None),
            Setting("initial_workers", Integer(), None),
            Setting("synchronous", JAVA_SWITCH, True),
            Setting("s3_sse_kms", JAVA_SWITCH, False),
        ),
        example='{"url": "model.mar"}',
    ),
    Verb.LIST: VerbRow(
        _list,
        (
            Setting("limit", Integer(0, MOST_LISTED), MOST_LISTED),
            Setting("next_page_token", Integer(0), 0),
        ),
    ),
    Verb.DESCRIBE: VerbRow(_describe, (Setting("customized", JAVA_SWITCH, False),)),
    Verb.READY: VerbRow(_ready),
    Verb.SCALE: VerbRow(
        _scale,
        (
            Setting("model_version"),
            Setting("min_worker", Integer(), 1),
            Setting("max_worker", Integer(), None),
            Setting("synchronous", JAVA_SWITCH, False),
        ),
    ),
    Verb.SET_DEFAULT: VerbRow(_set_default),
    Verb.UNREGISTER: VerbRow(_unregister),
}
"""What each verb does, and its arguments. A value that cannot be counts as not given, as in the original."""
