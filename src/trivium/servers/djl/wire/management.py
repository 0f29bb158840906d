"""Reads the requests that manage models: registering, listing, describing, scaling and unregistering them.

Source: spec sheet `djl`, sections 5.1 and 5.3. What becomes of a wish the core decides; answers are written by
`management_answer`.
"""

import logging
from collections.abc import Collection, Mapping

from trivium.codecs.error_table import SAID, said
from trivium.codecs.error_texts import wire_text
from trivium.codecs.flat_arguments import read_members, read_query
from trivium.codecs.header_text import essence
from trivium.servers.djl.wire import management_answer as answers
from trivium.servers.djl.wire.errors import ILLEGAL, NO_NUMBER
from trivium.servers.djl.wire.management_answer import ManagementEncoder
from trivium.servers.djl.wire.routes import DjlVerb
from trivium.servers.djl.words.model_urls import LOCAL, DjlModelUrl, read_devices, read_url
from trivium.servers.djl.words.workflows import TEMPLATE_NAMES, TEMPLATE_PARAMETERS, TEMPLATES
from trivium.types.errors import Code, ServeError
from trivium.types.log_settings import LogChange
from trivium.types.operations import (
    DescribeAll,
    List,
    LogControl,
    Operation,
    Register,
    Scale,
    Unregister,
)
from trivium.types.sources import ModelSource, SourceSetting
from trivium.types.spec import Origin
from trivium.types.wire import Body, Head, Target

_SETTINGS: Mapping[str, str] = {
    "job_queue_size": "job_queue_size",
    "batch_size": "batch_size",
    "max_batch_delay": "max_batch_delay",
    "max_idle_time": "max_idle_time",
    "min_worker": "minWorkers",
    "max_worker": "maxWorkers",
}
"""Parameter of a registration -> the key of serving.properties that it goes before."""

_NOT_SETTINGS = frozenset(
    (*_SETTINGS, "url", "template", "synchronous", "model_name", "model_version", "engine", "device")
)
"""Parameters of a registration that are put into no definition of a workflow."""

MOST_LISTED = 100
_LARGEST = 2**31 - 1
_EXAMPLE = '{"url": "file:///m"}'
"""A body that registers a model."""

_LEVELS: Mapping[str, int] = {
    "trace": logging.DEBUG,
    "debug": logging.DEBUG,
    "info": logging.INFO,
    "warn": logging.WARNING,
    "warning": logging.WARNING,
    "error": logging.ERROR,
    "off": logging.CRITICAL,
}


def decode_management(
    head: Head, target: Target, body: Body, request_id: str, exact: bool
) -> tuple[Operation, ManagementEncoder]:
    """The operation of a target with one of these verbs, and the encoder for its answer. INVALID or UNSUPPORTED."""
    given = Parameters(parameters_of(head, target, body), exact)
    is_workflow = head.path.startswith("/workflows")
    operation: Operation
    match target.verb:
        case DjlVerb.REGISTER:
            operation, write = _register(given, is_workflow)
        case DjlVerb.LIST:
            limit, offset = given.number("limit", MOST_LISTED), given.number("next_page_token", 0)
            limit = limit if 1 <= limit <= MOST_LISTED else MOST_LISTED
            operation, write = List(), answers.listed(limit, max(offset, 0), is_workflow)
        case DjlVerb.DESCRIBE:
            operation = DescribeAll(target.model, target.version)
            write = answers.described
        case DjlVerb.SCALE:
            operation, write = _scale(given, target)
        case DjlVerb.UNREGISTER:
            operation = Unregister(target.model, target.version)
            write = answers.unregistered(target.model)
        case _:
            operation, write = LogControl(_log_change(given)), answers.logged
    return operation, ManagementEncoder(request_id, write, exact)


class Parameters:
    """The parameters of one request by name. Numbers that are none are refused as the original does if `exact`."""

    def __init__(self, values: Mapping[str, str], exact: bool) -> None:
        self._values = values
        self._exact = exact

    @property
    def names(self) -> Collection[str]:
        """Return the names of those that are given."""
        return self._values

    def text(self, name: str) -> str:
        """The value of a parameter; empty where it is not given."""
        return self._values.get(name, "")

    def number(self, name: str, default: int, status: int = 409) -> int:
        """A whole number; the default where it is not given. INVALID, with this status in the original's words."""
        text = self.text(name)
        if not text:
            return default
        digits = text.removeprefix("-")
        if digits.isascii() and digits.isdigit() and len(digits) <= 10 and abs(int(text)) <= _LARGEST:
            return int(text)
        raise said(
            Code.INVALID,
            f"The parameter {name} is {text[:80]!r}; expected is a whole number, such as {name}={max(default, 1)}.",
            f'For input string: "{text[:80]}"',
            SAID if status == 400 else NO_NUMBER,
        )

    def switch(self, name: str, default: bool) -> bool:
        """A truth value as Java reads it: true in any capitals is true."""
        text = self.text(name)
        return text.lower() == "true" if text else default


def parameters_of(head: Head, target: Target, body: Body) -> dict[str, str]:
    """Return the members of a JSON body, or the arguments of the query; of repeated ones the first."""
    content_type = head.headers.get(b"content-type", b"").decode("latin-1")
    if target.verb == DjlVerb.REGISTER and essence(content_type) == "application/json":
        return read_members(body.data, _EXAMPLE)
    return read_query(head.query)


def _register(given: Parameters, is_workflow: bool) -> tuple[Register, answers.Write]:
    template = given.text("template") if is_workflow else ""
    text = given.text("url")
    if not text and not template:
        words = (
            "Either parameter url or template is required." if is_workflow else "Parameter url is required."
        )
        raise said(
            Code.INVALID,
            "The parameter url is missing; expected is the URL of a model, such as url=file:///models/m.",
            words,
        )
    if template:
        source = _of_template(given, template)
    else:
        source = _source(given, servable(read_url(text)), is_workflow)
    waits = given.switch("synchronous", True)
    return Register(source, waits), answers.registered(source.name, waits, is_workflow)


def servable(url: DjlModelUrl) -> DjlModelUrl:
    """Return the URL, if it is one of a model that can be fetched or is here. Raises UNSUPPORTED."""
    if url.scheme != LOCAL and "://" not in url.place:
        raise ServeError(
            Code.UNSUPPORTED,
            f"{url.place}: models are not fetched from {url.scheme}:// in this version. Download the model, and give "
            "the path of its folder or archive on this machine.",
        )
    return url


def _of_template(given: Parameters, template: str) -> ModelSource:
    """Return the source of a definition that is there by name, with the request's parameters. INVALID for no such."""
    if template not in TEMPLATE_NAMES:
        raise said(
            Code.CONFLICT,
            f"There is no template {template[:80]!r} of a workflow; there is: {', '.join(TEMPLATE_NAMES)}.",
            f"The workflow template {wire_text(template[:80])} could not be found",
            ILLEGAL,
        )
    values = {name: given.text(name) for name in TEMPLATE_PARAMETERS}
    for name, value in values.items():
        if not value:
            words = f"The parameter {name} is missing; the template {template} is filled with {', '.join(values)}."
            raise said(Code.CONFLICT, words, reason=ILLEGAL)
    values["base"] = read_url(values["model"]).model
    over = {name: SourceSetting(value, Origin("the request", name)) for name, value in values.items()}
    uri = str(TEMPLATES / f"{template}.json")
    return ModelSource(uri, values["adapter"], over=over, is_named_after_uri=True)


def _source(given: Parameters, url: DjlModelUrl, is_workflow: bool) -> ModelSource:
    """Return what the URL and the parameters ask for; a parameter goes before what the URL says. What else a request to
    the workflows says is put into the definition.
    """
    source = url.source("the URL of the request")
    over = dict(source.over)
    for name in given.names if is_workflow else ():
        if name not in _NOT_SETTINGS:
            over[name] = SourceSetting(given.text(name), Origin("the request", name))
    for name, key in _SETTINGS.items():
        number = given.number(name, -1)
        if number > 0 or (number == 0 and name in ("max_batch_delay", "max_idle_time")):
            over[key] = SourceSetting(str(number), Origin("the request", name))
    devices = given.text("device")
    return ModelSource(
        source.uri,
        given.text("model_name") or source.name,
        given.text("model_version") or source.version,
        given.text("engine") or source.engine,
        read_devices(devices) if devices else source.devices,
        over,
        is_named_after_uri=source.is_named_after_uri and not given.text("model_name"),
    )


def _scale(given: Parameters, target: Target) -> tuple[Scale, answers.Write]:
    least, most = given.number("min_worker", -1, status=400), given.number("max_worker", -1, status=400)
    devices = read_devices(given.text("device"))
    kind = devices[0].rstrip("0123456789") if devices else ""
    device = {"-1": "cpu", "-": "cpu", "": "gpu", "*": ""}.get(kind, kind) if devices else ""
    scale = Scale(
        target.model,
        None if least < 0 else least,
        None if most < 0 else most,
        target.version,
        device,
        wait=False,
    )
    return scale, answers.scaled(target.model, least, most)


def _log_change(given: Parameters) -> LogChange:
    text = given.text("level") or "info"
    level = _LEVELS.get(text.lower())
    if level is None:
        raise ServeError(
            Code.INVALID,
            f"There is no log level {text[:40]!r}; there are: {', '.join(_LEVELS)}. Name one of them.",
        )
    return LogChange(
        verbose=int(level <= logging.DEBUG),
        info=level <= logging.INFO,
        warning=level <= logging.WARNING,
        error=level <= logging.ERROR,
    )
