"""Reads the requests that manage TorchServe's models, over HTTP and gRPC alike: as operations, with what writes their
answers.

Source: spec sheet `torchserve`, sections 5 and 7. What becomes of a wish the core decides.
"""

from collections.abc import Mapping

import msgspec

from trivium.codecs.error_texts import wire_text
from trivium.codecs.flat_arguments import read_members, read_query
from trivium.codecs.header_text import essence
from trivium.servers.torchserve.wire import management_answer as answers
from trivium.servers.torchserve.wire.management_errors import (
    Act,
    Wish,
    invalid,
    missing,
    model_api_off,
    not_from_here,
    worded,
)
from trivium.servers.torchserve.wire.management_options import ManagementOptions
from trivium.servers.torchserve.wire.management_routes import ManagementVerb as Verb
from trivium.servers.torchserve.wire.request import properties_of
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
from trivium.types.sources import ModelSource, SourceSetting
from trivium.types.spec import Origin
from trivium.types.wire import Body, Head, Target

MOST_LISTED = 100
_ALL = "all"
_RUNTIMES = ("python", "python3", "lsp")
_LARGEST = 2**31 - 1
_EXAMPLE = '{"url": "model.mar"}'
"""A body that registers a model."""

_SETTINGS = ("batch_size", "max_batch_delay", "response_timeout", "startup_timeout")
_LEAST = {"max_batch_delay": 0}
_REQUEST = "the request"


class ManagementRequest(msgspec.Struct, frozen=True):
    """An operation, what it stands for in errors, and what writes its answer."""

    operation: Operation
    wish: Wish
    write: answers.Write
    reason: bytes | None = None


class TorchServeParameters:
    """The parameters of one request by name, as text. What is no number counts as not given, as in the original."""

    def __init__(self, values: Mapping[str, str]) -> None:
        self._values = values

    def text(self, name: str) -> str:
        """The value of a parameter; empty where it is not given."""
        return self._values.get(name, "")

    def has(self, name: str) -> bool:
        """Is it given, if only as an empty text?"""
        return name in self._values

    def number(self, name: str, default: int) -> int:
        """A whole number of 32 bits; the default for anything else."""
        text = self.text(name)
        digits = text[1:] if text[:1] in ("-", "+") else text
        if digits.isascii() and digits.isdigit() and len(digits) <= 10 and abs(int(text)) <= _LARGEST:
            return int(text)
        return default

    def switch(self, name: str, default: bool) -> bool:
        """A truth value as Java reads it: true in any capitals is true, all else is not."""
        text = self.text(name)
        return text.lower() == "true" if text else default


# -- over HTTP ---------------------------------------------------------------------------------------------


def parameters_of(head: Head, body: Body) -> TorchServeParameters:
    """Return the members of a JSON body, or the arguments of the query; of repeated ones the first. INVALID for what
    cannot be read.
    """
    content_type = head.headers.get(b"content-type", b"").decode("latin-1")
    if head.method == "POST" and essence(content_type) == "application/json":
        return TorchServeParameters(read_members(body.data, _EXAMPLE))
    return TorchServeParameters(read_query(head.query))


# -- what is asked for -------------------------------------------------------------------------------------


def register(given: TorchServeParameters, options: ManagementOptions, waits: bool) -> ManagementRequest:
    """A registration; `waits` where it does not say. METHOD where the model API is off, else as `ModelStore.place`."""
    _check_may_change(options, registers=True)
    url = given.text("url")
    if not given.has("url"):
        raise missing("url", "Give the name of a model in the store, such as url=model.mar.")
    name = given.text("model_name")
    if name and (why := unfit_name(name)):
        raise invalid("Invalid model_name.", f"It {why}. Give another one.")
    runtime = given.text("runtime")
    if runtime and runtime.lower() not in _RUNTIMES:
        raise invalid(f"Invalid RuntimeType value: {runtime[:80]}", "Give python, or leave it out.")
    if given.switch("s3_sse_kms", False):
        raise ServeError(
            Code.UNSUPPORTED,
            "s3_sse_kms: signed requests for https:// URLs of S3 are not supported in this version. Give the URL as "
            "s3://BUCKET/KEY, which is signed with the keys of the environment.",
        )
    wish = Wish(Act.REGISTER, given.text("model_name"), url=url)
    try:
        place = options.store.place(url)
    except ServeError as error:
        raise worded(error, wish) from error
    source = ModelSource(
        place, given.text("model_name"), over=_settings(given, options), within=options.store.bounds(url)
    )
    is_awaited = given.switch("synchronous", waits)
    operation = Register(source, is_awaited, keeps_default=True)
    wish = msgspec.structs.replace(wish, is_remote=source.is_remote)
    return ManagementRequest(operation, wish, answers.registered(source, is_awaited))


def _settings(given: TorchServeParameters, options: ManagementOptions) -> dict[str, SourceSetting]:
    over = {}
    for name in _SETTINGS:
        number = given.number(name, -1)
        if number >= _LEAST.get(name, 1):
            over[name] = _setting(name, str(number))
    for name in ("handler", "runtime"):
        if text := given.text(name):
            over[name] = _setting(name, text)
    workers = given.number("initial_workers", options.workers)
    over["initial_workers"] = _setting("initial_workers", str(max(workers, 0)))
    return over


def _setting(name: str, value: str) -> SourceSetting:
    return SourceSetting(value, Origin(_REQUEST, name))


def list_models(limit: int, offset: int, options: ManagementOptions) -> ManagementRequest:
    """A page of the models, from the one with the number `offset` on."""
    limit = limit if 0 <= limit <= MOST_LISTED else MOST_LISTED
    return ManagementRequest(
        List(), Wish(Act.LIST), answers.listed(limit, max(offset, 0), options.store.shown)
    )


def describe(
    model: str, version: str, shown_as: Mapping[str, str] | None, request_id: str, options: ManagementOptions
) -> ManagementRequest:
    """A description of the default version, of one, or of all. One that is customized asks a worker, too, which sees
    the header fields `shown_as`; None: it is not.
    """
    wish = Wish(Act.DESCRIBE, model, version)
    _check_named(wish)
    shown = options.store.shown
    if version == _ALL:
        return ManagementRequest(DescribeAll(model), wish, answers.described(shown, is_all=True))
    asked, is_customized = None, shown_as is not None
    if shown_as is not None:
        payload = Raw((), shown_as, path=None)
        asked = Infer(model, payload, version, request_id, method=DESCRIBE, alone=True)
    write = answers.described(shown, is_customized=is_customized)
    return ManagementRequest(DescribeAll(model, version, asked), wish, write, b"" if is_customized else None)


def ready(model: str) -> ManagementRequest:
    """A question of KServe's v1: has the model workers?"""
    return ManagementRequest(DescribeAll(model), Wish(Act.DESCRIBE, model), answers.ready(model))


def _check_named(wish: Wish) -> None:
    """Raise what the original says of a model that there is not, where none is named: no other is taken for it."""
    if not wish.model:
        error = ServeError(
            Code.NOT_FOUND,
            "The request names no model. Set its model_name.",
            info=ErrorInfo.of(reasons.UNKNOWN_MODEL, model=""),
        )
        raise worded(error, wish)


def scale(
    model: str, version: str, least: int, most: int | None, waits: bool, options: ManagementOptions
) -> ManagementRequest:
    """Other bounds for a version; without `most` exactly the least. INVALID for bounds that cannot be."""
    _check_may_change(options)
    wish = Wish(Act.SCALE, model, version)
    _check_named(wish)
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


def set_default(model: str, version: str, options: ManagementOptions) -> ManagementRequest:
    """A choice of the version that serves requests which name none."""
    _check_may_change(options)
    wish = Wish(Act.SET_DEFAULT, model, version)
    _check_named(wish)
    text = f'Default version successfully updated for model "{wire_text(model)}" to "{wire_text(version)}"'
    return ManagementRequest(SetDefault(model, version), wish, answers.status(text))


def unregister(model: str, version: str, options: ManagementOptions) -> ManagementRequest:
    """An end of a version, or of the default one. METHOD where the model API is off."""
    _check_may_change(options, registers=True)
    text = f'Model "{wire_text(model)}" unregistered'
    operation = Unregister(model, version, spares_default=True)
    return ManagementRequest(operation, Wish(Act.UNREGISTER, model, version), answers.status(text))


def _check_may_change(options: ManagementOptions, registers: bool = False) -> None:
    if registers and not options.registers:
        raise model_api_off()
    if not options.may_change:
        raise not_from_here()


def decode_management(
    head: Head, target: Target, body: Body, request_id: str, options: ManagementOptions
) -> ManagementRequest:
    """The request of a target of `management_routes`. Raises ServeError."""
    given = parameters_of(head, body)
    model, version = target.model, target.version
    match target.verb:
        case Verb.REGISTER:
            return register(given, options, waits=True)
        case Verb.LIST:
            return list_models(
                given.number("limit", MOST_LISTED), given.number("next_page_token", 0), options
            )
        case Verb.DESCRIBE:
            is_customized = given.switch("customized", False)
            shown_as = properties_of(head, len(body.data)) if is_customized else None
            return describe(model, version, shown_as, request_id, options)
        case Verb.READY:
            return ready(model)
        case Verb.SCALE:
            least = given.number("min_worker", 1)
            most = given.number("max_worker", least)
            version = version or given.text("model_version")
            return scale(model, version, least, most, given.switch("synchronous", False), options)
        case Verb.SET_DEFAULT:
            return set_default(model, version, options)
    return unregister(model, version, options)
