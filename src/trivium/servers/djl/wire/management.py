"""Reads the requests that manage models: registering, listing, describing, scaling and unregistering them.

Source: spec sheet `djl`, sections 5.1 and 5.3. What becomes of a wish the core decides; answers are written by
`management_answer`.
"""

import logging
from collections.abc import Callable, Mapping
from dataclasses import replace

from trivium.codecs.error_table import SAID, said
from trivium.codecs.error_texts import wire_text
from trivium.servers.djl.wire import management_answer as answers
from trivium.servers.djl.wire.errors import ILLEGAL, NO_NUMBER
from trivium.servers.djl.wire.management_answer import ManagementEncoder
from trivium.servers.djl.wire.routes import DjlVerb
from trivium.servers.djl.words.model_urls import LOCAL, DjlModelUrl, read_devices, read_url
from trivium.servers.djl.words.workflows import TEMPLATE_NAMES, TEMPLATE_PARAMETERS, TEMPLATES
from trivium.settings.arguments import MOST_LISTED, Arguments, Refuse, VerbRow, asked
from trivium.settings.kinds import JAVA_SWITCH, LARGEST, Form, Integer
from trivium.settings.setting import Setting
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
from trivium.types.wire import Body, Head, Target

_OVER: Mapping[str, str] = {
    "job_queue_size": "job_queue_size",
    "batch_size": "batch_size",
    "max_batch_delay": "max_batch_delay",
    "max_idle_time": "max_idle_time",
    "min_worker": "minWorkers",
    "max_worker": "maxWorkers",
}
"""Argument of a registration -> the key of serving.properties that it goes before."""

_LEVELS: Mapping[str, int] = {
    "trace": logging.DEBUG,
    "debug": logging.DEBUG,
    "info": logging.INFO,
    "warn": logging.WARNING,
    "warning": logging.WARNING,
    "error": logging.ERROR,
    "off": logging.CRITICAL,
}

Decoded = tuple[Operation, answers.Write]
"""An operation, and what writes its answer."""

Reader = Callable[[Head, Target, Arguments], Decoded]


def decode_management(
    row: VerbRow[Reader], head: Head, target: Target, body: Body, request_id: str, exact: bool
) -> tuple[Operation, ManagementEncoder]:
    """The operation of a target with this verb, and the encoder for its answer. INVALID or UNSUPPORTED."""
    operation, write = row.read(head, target, row.given(row.texts(head, body)))
    return operation, ManagementEncoder(request_id, write, exact)


def refusing(reason: str) -> Refuse:
    """Return what is said of a number that is none, in the original's words."""
    return lambda row, text: said(
        Code.INVALID,
        f"The parameter {row.name} is {text[:80]!r}; expected is {row.kind.expected}, such as "
        f"{row.name}={max(row.default or 1, 1)}.",
        f'For input string: "{text[:80]}"',
        reason,
    )


def _is_workflow(head: Head) -> bool:
    return head.path.startswith("/workflows")


def _register(head: Head, target: Target, given: Arguments) -> Decoded:
    is_workflow = _is_workflow(head)
    template = given.value("template") if is_workflow else ""
    text = given.value("url")
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
        source = _of_template(given.texts, template)
    else:
        source = _source(given, servable(read_url(text)), is_workflow)
    waits = given.value("synchronous")
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


def _of_template(given: Mapping[str, str], template: str) -> ModelSource:
    """Return the source of a definition that is there by name, with the request's parameters. INVALID for no such."""
    if template not in TEMPLATE_NAMES:
        raise said(
            Code.CONFLICT,
            f"There is no template {template[:80]!r} of a workflow; there is: {', '.join(TEMPLATE_NAMES)}.",
            f"The workflow template {wire_text(template[:80])} could not be found",
            ILLEGAL,
        )
    values = {name: given.get(name, "") for name in TEMPLATE_PARAMETERS}
    for name, value in values.items():
        if not value:
            words = f"The parameter {name} is missing; the template {template} is filled with {', '.join(values)}."
            raise said(Code.CONFLICT, words, reason=ILLEGAL)
    values["base"] = read_url(values["model"]).model
    over = {name: asked(name, value) for name, value in values.items()}
    uri = str(TEMPLATES / f"{template}.json")
    return ModelSource(uri, values["adapter"], over=over, is_named_after_uri=True)


def _source(given: Arguments, url: DjlModelUrl, is_workflow: bool) -> ModelSource:
    """Return what the URL and the parameters ask for. What else a request to the workflows says is put into the
    definition.
    """
    others = {name: text for name, text in given.texts.items() if is_workflow and name not in given.rows}
    return source_of(
        url,
        "the URL of the request",
        (given.value("model_name"), given.value("model_version"), given.value("engine")),
        {name: asked(name, text) for name, text in others.items()} | given.over(_OVER),
        given.value("device"),
    )


def source_of(
    url: DjlModelUrl,
    said_by: str,
    wanted: tuple[str, str, str],
    over: Mapping[str, SourceSetting],
    devices: tuple[str, ...] | None,
) -> ModelSource:
    """Return what a URL asks for, before which goes what its request wants: the name, the version and the engine, the
    settings and the devices, where it says them.
    """
    source = url.source(said_by)
    name, version, engine = wanted
    return replace(
        source,
        name=name or source.name,
        version=version or source.version,
        engine=engine or source.engine,
        devices=source.devices if devices is None else devices,
        over={**source.over, **over},
        is_named_after_uri=source.is_named_after_uri and not name,
    )


def _list(head: Head, target: Target, given: Arguments) -> Decoded:
    return List(), answers.listed(given.value("limit"), given.value("next_page_token"), _is_workflow(head))


def _describe(head: Head, target: Target, given: Arguments) -> Decoded:
    return DescribeAll(target.model, target.version), answers.described


def _scale(head: Head, target: Target, given: Arguments) -> Decoded:
    least, most = given.value("min_worker"), given.value("max_worker")
    devices = given.value("device")
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
    bounds = f"min workers:{least} max workers:{most}"
    text = f'Workflow "{target.model}" worker scaled. New Worker configuration {bounds}'
    return scale, answers.status(text)


def _unregister(head: Head, target: Target, given: Arguments) -> Decoded:
    text = f'Model or workflow "{target.model}" unregistered'
    return Unregister(target.model, target.version), answers.status(text)


def _log(head: Head, target: Target, given: Arguments) -> Decoded:
    text = given.value("level")
    level = _LEVELS.get(text.lower())
    if level is None:
        raise ServeError(
            Code.INVALID,
            f"There is no log level {text[:40]!r}; there are: {', '.join(_LEVELS)}. Name one of them.",
        )
    change = LogChange(
        verbose=int(level <= logging.DEBUG),
        info=level <= logging.INFO,
        warning=level <= logging.WARNING,
        error=level <= logging.ERROR,
    )
    return LogControl(change), answers.status("OK")


def _number(name: str, least: int = -LARGEST, most: int = LARGEST, default: int | None = None) -> Setting:
    return Setting(name, Integer(least, most, signs="-"), default)


PAGE = (_number("limit", 1, MOST_LISTED, MOST_LISTED), _number("next_page_token", 0, default=0))
"""The arguments of a listing."""

_DEVICES = Form("names of devices", read_devices)
VERBS: Mapping[str, VerbRow[Reader]] = {
    DjlVerb.REGISTER: VerbRow(
        _register,
        (
            Setting("url"),
            Setting("template"),
            Setting("model_name"),
            Setting("model_version"),
            Setting("engine"),
            Setting("device", _DEVICES, None),
            Setting("synchronous", JAVA_SWITCH, True),
            _number("job_queue_size", 1),
            _number("batch_size", 1),
            _number("max_batch_delay", 0),
            _number("max_idle_time", 0),
            _number("min_worker", 1),
            _number("max_worker", 1),
        ),
        refusing(NO_NUMBER),
        '{"url": "file:///m"}',
    ),
    DjlVerb.LIST: VerbRow(_list, PAGE, refusing(NO_NUMBER)),
    DjlVerb.DESCRIBE: VerbRow(_describe),
    DjlVerb.SCALE: VerbRow(
        _scale,
        (
            _number("min_worker", default=-1),
            _number("max_worker", default=-1),
            Setting("device", _DEVICES, ()),
        ),
        refusing(SAID),
    ),
    DjlVerb.UNREGISTER: VerbRow(_unregister),
    DjlVerb.LOGGING: VerbRow(_log, (Setting("level", default="info"),)),
}
"""What each verb does, and its arguments. A number that is none is refused, in the original's words."""
